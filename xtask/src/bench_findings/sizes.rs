//! Sizes of repairs that their user chooses: a prediction is compared in the size that the repaired variant of a case has.

use iowhy_cases::Case;
use iowhy_core::finding::{FindingId, Prediction};
use iowhy_core::units::parse_bytes_nonzero;
use iowhy_diagnose::findings;
use iowhy_diagnose::repair::Sizes;

/// Predictions of the size that the repaired variant has, where the user chooses: the case says it for proofs, too.
pub(super) fn as_repaired(
    case: &Case,
    predictions: &[(FindingId, Prediction)],
) -> Vec<(FindingId, Prediction)> {
    let sized = |(id, prediction): &(FindingId, Prediction)| {
        let mut prediction = prediction.clone();
        let nearest = asked(case.prove, *id).and_then(|wanted| {
            let far =
                |sizes: &Sizes| size_of(sizes, *id).map_or(f64::INFINITY, |size| (size / wanted).ln().abs());
            let all = prediction.choices.iter().filter_map(|choice| {
                let (_, sizes) = findings::choices(*id).iter().find(|(name, _)| *name == choice.size)?;
                Some((choice, far(sizes)))
            });
            all.min_by(|a, b| a.1.total_cmp(&b.1)).map(|(choice, _)| choice.remaining)
        });
        prediction.remaining = nearest.unwrap_or(prediction.remaining);
        (*id, prediction)
    };
    predictions.iter().map(sized).collect()
}

/// The option of `iowhy prove` for the size of a finding's repair.
fn option_of(id: FindingId) -> Option<&'static str> {
    match id {
        FindingId::SyncPerWrite => Some("--batch"),
        FindingId::SmallRequests => Some("--request"),
        FindingId::DeviceSaturated => Some("--subsample"),
        _ => None,
    }
}

fn size_of(sizes: &Sizes, id: FindingId) -> Option<f64> {
    match id {
        FindingId::SyncPerWrite => Some(sizes.batch as f64),
        FindingId::SmallRequests => Some(sizes.request_bytes as f64),
        FindingId::DeviceSaturated => Some(f64::from(sizes.subsample)),
        _ => None,
    }
}

/// The size that these options name for a finding.
fn asked(options: &[&str], id: FindingId) -> Option<f64> {
    let option = option_of(id)?;
    let value = options.iter().position(|word| *word == option).and_then(|at| options.get(at + 1))?;
    match *value {
        "all" => Some(Sizes::ALL as f64),
        value => parse_bytes_nonzero(option, value).ok().map(|n| n as f64),
    }
}

#[cfg(test)]
mod tests {
    use iowhy_cases::catalogue;
    use iowhy_core::estimate::{Estimate, Unit};
    use iowhy_core::finding::PredictedChoice;

    use super::*;

    #[test]
    fn a_prediction_is_compared_in_the_size_of_the_repaired_variant() {
        let remaining = |value| Estimate { value, low: value, high: value, unit: Unit::Nanoseconds, n: 9 };
        let choice = |(size, _): &(&str, Sizes)| PredictedChoice {
            size: (*size).to_owned(),
            remaining: remaining(size.len() as f64),
        };
        let prediction = |id| {
            let choices = findings::choices(id).iter().map(choice).collect();
            let how = String::new();
            (
                id,
                Prediction {
                    how,
                    remaining: remaining(0.5),
                    wall_ns: 1.0,
                    repeated: None,
                    choices,
                    notes: Vec::new(),
                },
            )
        };
        let of = |case: &str, id| {
            as_repaired(catalogue::find(case).expect("a case"), &[prediction(id)])[0].1.remaining.value
        };
        // The whole run: the largest batch, `1,000`. A sixteenth of the bytes.
        assert_eq!(of("sync-c", FindingId::SyncPerWrite), 5.0);
        assert_eq!(of("saturated-dd", FindingId::DeviceSaturated), "a sixteenth".len() as f64);
        assert_eq!(of("sync-c", FindingId::QueueDepthOne), 0.5, "the case says nothing about it");
    }
}

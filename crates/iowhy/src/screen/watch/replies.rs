//! The rate of replies of a server beside a finding: counted now, and predicted without the cause.

use iowhy_core::finding::{Finding, Replies, ReplyLimit, ReplyRate};
use iowhy_core::units::count;

use super::percent_of;

/// Part of their time that answering threads wait for clients, from which on it is said.
const IDLE: f64 = 0.2;

/// One paragraph; `None`: nobody answers.
pub(super) fn note(finding: &Finding) -> Option<String> {
    let replies = finding.replies.as_ref()?;
    let Some(now) = replies.per_second else {
        return Some(format!("replies a second: not known: {}", replies.not_known.as_deref()?));
    };
    let mut text = format!("{} replies a second, counted as writes to accepted connections", per_second(now));
    if let Some(connections) = replies.connections.filter(|connections| *connections > 1) {
        text.push_str(&format!(" ({})", count(connections)));
    }
    match (&replies.without_cause, replies.not_known.as_deref()) {
        (Some(rate), _) => text.push_str(&predicted(finding, replies, rate)),
        (None, why) => {
            text.push_str(&format!("; the rate without the cause is not known: {}", why.unwrap_or("-")))
        }
    }
    Some(text)
}

/// What is predicted, and what it supposes.
fn predicted(finding: &Finding, replies: &Replies, rate: &ReplyRate) -> String {
    let mut text = format!(
        "; {} without this cause if each client sends again as soon as it has its reply (n = {})",
        span(rate),
        count(rate.per_second.n)
    );
    if rate.limit == ReplyLimit::Cpus {
        text.push_str(
            "; then the CPUs are the limit, where the CPU time of other processes grows with the replies; at most, it does not",
        );
    }
    if let Some((with, prediction)) = replies.with_change.as_ref().zip(finding.prediction.as_ref()) {
        text.push_str(&format!("; with {}: {}", prediction.how, span(with)));
    }
    let idle = if replies.idle_share >= IDLE {
        format!(" (the threads that answer wait for them {} of their time)", percent_of(replies.idle_share))
    } else {
        String::new()
    };
    text.push_str(&format!(
        "; where clients send at a pace of their own{idle}, the rate stays and replies come sooner"
    ));
    text
}

fn span(rate: &ReplyRate) -> String {
    let [value, low, high] =
        [rate.per_second.value, rate.per_second.low, rate.per_second.high].map(per_second);
    format!("{value} [{low}, {high}]")
}

/// Whole above ten.
fn per_second(rate: f64) -> String {
    if rate >= 9.95 { count(rate.round() as u64) } else { format!("{rate:.1}") }
}

#[cfg(test)]
mod tests {
    use iowhy_core::estimate::{Estimate, Unit};
    use iowhy_core::finding::FindingId;

    use super::*;

    fn rate(value: f64, limit: ReplyLimit) -> ReplyRate {
        let per_second =
            Estimate { value, low: 0.9 * value, high: 1.1 * value, unit: Unit::PerSecond, n: 1500 };
        ReplyRate { per_second, limit }
    }

    fn finding(replies: Replies) -> Finding {
        Finding {
            id: FindingId::SyncPerWrite,
            share: 0.5,
            sentence: String::new(),
            evidence: Vec::new(),
            advice: String::new(),
            in_program: None,
            gain: None,
            gain_rest_unchanged: None,
            prediction: None,
            not_calibrated: None,
            replies: Some(replies),
            undecided: false,
        }
    }

    fn seen() -> Replies {
        Replies {
            calls: Some(12_340),
            per_second: Some(1234.0),
            connections: Some(50),
            idle_share: 0.0,
            without_cause: Some(rate(5000.0, ReplyLimit::Threads)),
            with_change: None,
            not_known: None,
        }
    }

    #[test]
    fn the_rate_is_told_with_what_it_supposes() {
        assert_eq!(
            note(&finding(seen())).unwrap(),
            "1,234 replies a second, counted as writes to accepted connections (50); 5,000 [4,500, 5,500] without this cause if each \
             client sends again as soon as it has its reply (n = 1,500); where clients send at a pace of their own, the rate stays and \
             replies come sooner"
        );
        let busy = Replies { without_cause: Some(rate(2000.0, ReplyLimit::Cpus)), idle_share: 0.6, ..seen() };
        let text = note(&finding(busy)).unwrap();
        assert!(text.contains("the CPUs are the limit") && text.contains("wait for them 60 % of"), "{text}");
    }

    #[test]
    fn what_is_not_known_is_told() {
        let nothing = Replies { without_cause: None, not_known: Some("nothing is left".into()), ..seen() };
        assert!(note(&finding(nothing)).unwrap().ends_with("is not known: nothing is left"));
        let uncounted =
            Replies { per_second: None, calls: None, not_known: Some("no counts".into()), ..seen() };
        assert_eq!(note(&finding(uncounted)).unwrap(), "replies a second: not known: no counts");
        let one = note(&finding(Replies { connections: Some(1), ..seen() })).unwrap();
        assert!(
            one.starts_with("1,234 replies a second, counted as writes to accepted connections; 5,000"),
            "{one}"
        );
    }
}

//! Weighted non-negative least squares for small dense problems: costs can be zero, never negative.
//!
//! Goal: an exact answer for up to about a hundred rows and fifteen columns, the same on every machine, for any
//! input, collinear and empty columns included. Non-goal: large or sparse problems.
//! Invariant: the answer satisfies the Karush-Kuhn-Tucker conditions up to rounding, and the search ends.

/// One equation: `coefficients · x ≈ value`, counted with `weight`.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// One coefficient for each column.
    pub coefficients: Vec<f64>,
    /// The observed value.
    pub value: f64,
    /// Factor on the residual; `1.0 / value` makes all rows count by their relative error.
    pub weight: f64,
}

/// The solution.
#[derive(Clone, Debug, PartialEq)]
pub struct Solution {
    /// One non-negative value for each column; zero for columns that depend on columns already in use.
    pub x: Vec<f64>,
    /// Root of the mean squared weighted residual over the rows used; zero without rows.
    pub residual: f64,
    /// Whether the search ended by itself (false: it was cut off; the answer is feasible but not optimal).
    pub converged: bool,
}

/// A column whose part outside the columns in use is below this share of its length counts as dependent on them.
const DEPENDENT: f64 = 1e-10;
/// A gradient below this share of the length of the weighted right-hand side counts as zero.
const FLAT: f64 = 1e-13;

/// Minimises `Σ (weight · (coefficients · x − value))²` over `x ≥ 0`.
///
/// Active-set method of Lawson and Hanson (Solving Least Squares Problems, 1974, chapter 23). Columns are scaled to
/// unit length first, so that a cost per byte and a cost per call weigh alike; the inner problem is solved by
/// modified Gram-Schmidt with one re-orthogonalisation, which does not square the condition number. Ties are broken
/// by the lower column. Rows with a number that is not finite, or with the wrong number of coefficients, are left
/// out.
pub fn solve(columns: usize, rows: &[Row]) -> Solution {
    let usable: Vec<&Row> = rows
        .iter()
        .filter(|r| {
            r.coefficients.len() == columns
                && r.value.is_finite()
                && r.weight.is_finite()
                && r.coefficients.iter().all(|c| c.is_finite())
        })
        .collect();
    let b: Vec<f64> = usable.iter().map(|r| r.value * r.weight).collect();
    let mut a: Vec<Vec<f64>> =
        (0..columns).map(|j| usable.iter().map(|r| r.coefficients[j] * r.weight).collect()).collect();
    let scale: Vec<f64> = a.iter().map(|column| dot(column, column).sqrt()).collect();
    for (column, &length) in a.iter_mut().zip(&scale) {
        if length > 0.0 {
            column.iter_mut().for_each(|v| *v /= length);
        }
    }
    let (scaled, converged) = active_set(&a, &b);
    let rest = residual_of(&a, &b, &scaled);
    let n = usable.len().max(1) as f64;
    Solution {
        x: scaled.iter().zip(&scale).map(|(&v, &s)| if s > 0.0 { v / s } else { 0.0 }).collect(),
        residual: (dot(&rest, &rest) / n).sqrt(),
        converged,
    }
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(x, y)| x * y).sum()
}

fn residual_of(a: &[Vec<f64>], b: &[f64], x: &[f64]) -> Vec<f64> {
    let mut rest = b.to_vec();
    for (column, &v) in a.iter().zip(x) {
        if v != 0.0 {
            rest.iter_mut().zip(column).for_each(|(r, c)| *r -= v * c);
        }
    }
    rest
}

/// The outer loop on unit columns. Returns the point and whether the search ended by itself.
fn active_set(a: &[Vec<f64>], b: &[f64]) -> (Vec<f64>, bool) {
    let columns = a.len();
    let mut x = vec![0.0; columns];
    let mut passive: Vec<usize> = Vec::new();
    // Columns that just proved useless (dependent, or pushed out at once); cleared whenever the point moves.
    let mut barred = vec![false; columns];
    let flat = FLAT * dot(b, b).sqrt();
    // Lawson and Hanson's own bound is three times the number of columns; more only helps degenerate cases.
    for _ in 0..(10 * columns + 10) {
        let rest = residual_of(a, b, &x);
        let best = (0..columns)
            .filter(|j| !passive.contains(j) && !barred[*j])
            .map(|j| (j, dot(&a[j], &rest)))
            .filter(|&(_, gradient)| gradient > flat)
            .fold(None, |best: Option<(usize, f64)>, c| match best {
                Some(kept) if kept.1 >= c.1 => Some(kept),
                _ => Some(c),
            });
        let Some((entering, _)) = best else { return (x, true) };
        passive.push(entering);
        let Some(mut z) = least_squares(a, b, &passive) else {
            passive.pop();
            barred[entering] = true;
            continue;
        };
        if z.last().is_none_or(|&v| v <= 0.0) {
            // Rounding: the gradient said up, the solution says down. Entering it would loop for ever.
            passive.pop();
            barred[entering] = true;
            continue;
        }
        while z.iter().any(|&v| v <= 0.0) {
            step_to_the_boundary(&mut x, &mut passive, &z);
            match least_squares(a, b, &passive) {
                Some(next) => z = next,
                None => return (x, false),
            }
        }
        x.fill(0.0);
        for (&j, &v) in passive.iter().zip(&z) {
            x[j] = v;
        }
        barred.fill(false);
    }
    (x, false)
}

/// Moves from `x` towards `z` until the first column reaches zero, and takes the columns at zero out.
fn step_to_the_boundary(x: &mut [f64], passive: &mut Vec<usize>, z: &[f64]) {
    let ratio = |j: usize, target: f64| if x[j] > target { x[j] / (x[j] - target) } else { 0.0 };
    let (blocking, alpha) = passive
        .iter()
        .zip(z)
        .filter(|&(_, &target)| target <= 0.0)
        .map(|(&j, &target)| (j, ratio(j, target)))
        .fold((usize::MAX, f64::INFINITY), |least, c| if c.1 < least.1 { c } else { least });
    for (&j, &target) in passive.iter().zip(z) {
        x[j] += alpha.min(1.0) * (target - x[j]);
    }
    passive.retain(|&j| j != blocking && x[j] > 0.0);
    for (j, value) in x.iter_mut().enumerate() {
        if !passive.contains(&j) {
            *value = 0.0;
        }
    }
}

/// Unconstrained least squares over the chosen unit columns; `None` when they depend on one another.
fn least_squares(a: &[Vec<f64>], b: &[f64], chosen: &[usize]) -> Option<Vec<f64>> {
    let k = chosen.len();
    let mut basis: Vec<Vec<f64>> = Vec::with_capacity(k);
    let mut r = vec![vec![0.0; k]; k];
    let mut rest = b.to_vec();
    let mut projection = vec![0.0; k];
    for (col, &j) in chosen.iter().enumerate() {
        let mut v = a[j].clone();
        for _pass in 0..2 {
            for (i, q) in basis.iter().enumerate() {
                let along = dot(q, &v);
                r[i][col] += along;
                v.iter_mut().zip(q).for_each(|(x, y)| *x -= along * y);
            }
        }
        let length = dot(&v, &v).sqrt();
        if length.is_nan() || length <= DEPENDENT {
            return None;
        }
        r[col][col] = length;
        v.iter_mut().for_each(|x| *x /= length);
        projection[col] = dot(&v, &rest);
        rest.iter_mut().zip(&v).for_each(|(x, y)| *x -= projection[col] * y);
        basis.push(v);
    }
    let mut z = vec![0.0; k];
    for i in (0..k).rev() {
        let above: f64 = (i + 1..k).map(|j| r[i][j] * z[j]).sum();
        z[i] = (projection[i] - above) / r[i][i];
    }
    Some(z)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn rows(data: &[(&[f64], f64)]) -> Vec<Row> {
        data.iter().map(|&(c, value)| Row { coefficients: c.to_vec(), value, weight: 1.0 }).collect()
    }

    #[test]
    fn an_interior_optimum_is_plain_least_squares() {
        // y = 3 + 2 t, exactly.
        let s = solve(2, &rows(&[(&[1.0, 0.0], 3.0), (&[1.0, 1.0], 5.0), (&[1.0, 4.0], 11.0)]));
        assert!((s.x[0] - 3.0).abs() < 1e-12 && (s.x[1] - 2.0).abs() < 1e-12);
        assert!(s.converged && s.residual < 1e-12);
    }

    #[test]
    fn a_negative_direction_is_held_at_zero_and_the_rest_refitted() {
        // Unconstrained: intercept 4, slope -1. Constrained: slope 0, intercept the mean.
        let s = solve(2, &rows(&[(&[1.0, 0.0], 4.0), (&[1.0, 1.0], 3.0), (&[1.0, 2.0], 2.0)]));
        assert_eq!(s.x[1], 0.0);
        assert!((s.x[0] - 3.0).abs() < 1e-12);
    }

    #[test]
    fn weights_decide_between_contradicting_rows() {
        let row = |value, weight| Row { coefficients: vec![1.0], value, weight };
        let s = solve(1, &[row(10.0, 1.0), row(20.0, 3.0)]);
        assert!((s.x[0] - (10.0 + 9.0 * 20.0) / 10.0).abs() < 1e-12);
    }

    #[test]
    fn the_1999_table_is_two_numbers() {
        // Transfers of 200 MiB from the disk's buffer without the copy: seconds = commands * c + bytes * b. The post
        // reckons about 1.2 ms a command and 29 MB/s.
        let table = [(256, 7.79), (128, 8.81), (64, 10.89), (32, 14.43), (16, 22.60), (8, 38.96), (4, 71.71)];
        let rows: Vec<Row> = table
            .iter()
            .map(|&(kib, seconds): &(u32, f64)| Row {
                coefficients: vec![200.0 * 1024.0 / f64::from(kib), 200.0],
                value: seconds,
                weight: 1.0 / seconds,
            })
            .collect();
        let s = solve(2, &rows);
        assert!((1.1e-3..1.4e-3).contains(&s.x[0]), "{:?} s a command", s.x[0]);
        assert!((27.0..31.0).contains(&(1.0 / s.x[1])), "{:?} MiB/s", 1.0 / s.x[1]);
        assert!(s.residual < 0.03);
    }

    #[test]
    fn degenerate_inputs_end() {
        assert_eq!(solve(0, &[]).x, Vec::<f64>::new());
        assert_eq!(solve(2, &[]).x, vec![0.0, 0.0]);
        let twins = solve(3, &rows(&[(&[1.0, 1.0, 0.0], 2.0), (&[2.0, 2.0, 0.0], 4.0)]));
        assert!(twins.converged);
        assert!((twins.x[0] + twins.x[1] - 2.0).abs() < 1e-9, "{twins:?}");
        assert_eq!(twins.x[2], 0.0);
        let bad = solve(
            1,
            &rows(&[(&[f64::NAN], 1.0), (&[1.0], f64::INFINITY), (&[1.0, 2.0], 3.0), (&[1.0], 7.0)]),
        );
        assert_eq!(bad.x, vec![7.0]);
    }

    proptest! {
        #[test]
        fn the_answer_satisfies_the_kkt_conditions(
            m in 1usize..40,
            n in 1usize..12,
            seed in any::<u64>(),
            duplicates in any::<bool>(),
        ) {
            let mut rng = crate::rng::Rng::new(seed);
            let rows: Vec<Row> = (0..m)
                .map(|_| {
                    let mut c: Vec<f64> = (0..n).map(|_| rng.unit() * 2.0 - 0.5).collect();
                    if duplicates && n > 1 {
                        c[n - 1] = c[0];
                    }
                    Row { coefficients: c, value: rng.unit() * 10.0 - 2.0, weight: 0.1 + rng.unit() }
                })
                .collect();
            let s = solve(n, &rows);
            prop_assert!(s.converged);
            for j in 0..n {
                prop_assert!(s.x[j] >= 0.0);
                let gradient: f64 = rows
                    .iter()
                    .map(|r| {
                        let fitted: f64 = r.coefficients.iter().zip(&s.x).map(|(a, b)| a * b).sum();
                        r.weight * r.weight * r.coefficients[j] * (r.value - fitted)
                    })
                    .sum();
                prop_assert!(gradient < 1e-7, "column {j}: {gradient}");
                if s.x[j] > 0.0 {
                    prop_assert!(gradient.abs() < 1e-7, "column {j} is in use: {gradient}");
                }
            }
        }

        #[test]
        fn a_non_negative_truth_is_found_again(n in 1usize..10, seed in any::<u64>()) {
            let mut rng = crate::rng::Rng::new(seed);
            let truth: Vec<f64> = (0..n).map(|_| if rng.below(3) == 0 { 0.0 } else { rng.unit() * 100.0 }).collect();
            let rows: Vec<Row> = (0..n + 5)
                .map(|_| {
                    let c: Vec<f64> = (0..n).map(|_| rng.unit()).collect();
                    let value: f64 = c.iter().zip(&truth).map(|(a, b)| a * b).sum();
                    Row { coefficients: c, value, weight: 1.0 / value.max(1e-3) }
                })
                .collect();
            let s = solve(n, &rows);
            for (found, wanted) in s.x.iter().zip(&truth) {
                prop_assert!((found - wanted).abs() < 1e-6 * (1.0 + wanted), "{found} for {wanted}");
            }
        }
    }
}

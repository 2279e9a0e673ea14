//! From accounts to rows: each thread's time by state and stack. Sleeps without a stack, samples that are too few, waits
//! for a CPU after wake-ups and gaps find their places here.

use std::collections::HashMap;

use iowhy_core::profile::{RequestTime, StackTime, State, Thread};

use super::account::{Account, BLOCKED, LOOK_BLOCKED, LOOK_RUNNING, QUEUED, RUNNING};
use super::hash::FastMap;
use super::stacks::{StackId, Stacks, UNKNOWN};

/// Samples that the proportions of related threads count as, when a thread's own are few.
const PRIOR: f64 = 20.0;
/// With this number of samples of its own a thread needs no others: its shares are known to 2 to 3 % of the whole.
const ENOUGH: u64 = 400;
/// Stacks that are taken over from related threads.
const MAX_TAKEN_OVER: usize = 64;
/// Rows up to which all threads are told apart: about 3 MB of a record. Of more, the shortest-lived threads of one name are one.
const TOLD_APART: usize = 16_384;
/// Most rows of the result; the smallest beyond lose their stack.
const MAX_ROWS: usize = 65_536;

/// Time of one thread in one state with one stack.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Row {
    /// Measured, and given to it from gaps.
    pub(super) measured_ns: f64,
    pub(super) gap_ns: f64,
    /// Measured sleeping time that was found to be queueing.
    pub(super) moved_ns: f64,
    /// Measured part of the wall clock.
    pub(super) wall_ns: f64,
    /// Part of the wall clock that is reckoned for `gap_ns`, and for `moved_ns`.
    pub(super) gap_wall_ns: f64,
    pub(super) moved_wall_ns: f64,
    pub(super) events: u64,
    /// Part of the time that was recorded as what the row says, and what requests did in it.
    pub(super) seen_ns: f64,
    pub(super) requests: RequestTime,
}

/// Applies something to each part of a sleep by requests.
fn each_part(of: &mut RequestTime, change: impl Fn(&mut f64)) {
    let RequestTime { device_ns, queued_ns, behind_others_ns, beside_others_ns, ring_ns } = of;
    let parts = [device_ns, queued_ns, behind_others_ns, beside_others_ns];
    parts.into_iter().chain(ring_ns).for_each(change);
}

impl Row {
    /// What was seen, as part of this time: rounded like it, and without what was found to be queueing.
    fn seen(&self, time_ns: f64, scale: f64) -> (f64, RequestTime) {
        let seen_ns = (self.seen_ns * scale).clamp(0.0, time_ns);
        let mut requests = self.requests;
        let whole = requests.device_ns + requests.queued_ns;
        let scale = if whole * scale > seen_ns { seen_ns / whole } else { scale };
        each_part(&mut requests, |part| *part *= scale);
        requests.ring_ns = requests.ring_ns.map(|ns| ns.min(seen_ns));
        (seen_ns, requests)
    }

    /// Takes this part of the time out, as a row of its own without events.
    pub(super) fn split_off(&mut self, part: f64) -> Row {
        let mut off = Row { events: 0, ..*self };
        for (here, there) in [
            (&mut self.measured_ns, &mut off.measured_ns),
            (&mut self.gap_ns, &mut off.gap_ns),
            (&mut self.wall_ns, &mut off.wall_ns),
        ] {
            *there *= part;
            *here -= *there;
        }
        off.forget(1.0 - part);
        self.forget(part);
        off
    }

    /// Takes another one in.
    pub(super) fn join(&mut self, other: &Row) {
        merge(self, other);
    }

    /// Loses this part of what was seen.
    pub(super) fn forget(&mut self, part: f64) {
        self.seen_ns *= 1.0 - part;
        each_part(&mut self.requests, |ns| *ns *= 1.0 - part);
    }
}

/// The rows of one account.
pub(super) type Book = FastMap<(State, StackId), Row>;

/// What related threads do: those of one name, or of one process.
#[derive(Default)]
struct ThreadSet {
    /// Running, queued, blocked.
    states: [f64; 3],
    samples: FastMap<StackId, u64>,
    asleep: FastMap<StackId, f64>,
}

impl ThreadSet {
    fn add(&mut self, a: &Account) {
        for (sum, state) in self.states.iter_mut().zip(states(a)) {
            *sum += state;
        }
        for ((stack, kind), t) in &a.tallies {
            match *kind {
                RUNNING => *self.samples.entry(*stack).or_default() += t.events,
                k if k >= BLOCKED && *stack != UNKNOWN => {
                    *self.asleep.entry(*stack).or_default() += t.time_ns as f64;
                }
                _ => {}
            }
        }
    }

    /// Shares of running time by stack, the greatest ones.
    fn shares(&self) -> Vec<(StackId, f64)> {
        let mut most: Vec<(StackId, u64)> = self.samples.iter().map(|(s, n)| (*s, *n)).collect();
        most.sort_unstable_by(|a, b| b.1.cmp(&a.1).then(a.0.cmp(&b.0)));
        most.truncate(MAX_TAKEN_OVER);
        let whole: u64 = most.iter().map(|(_, n)| n).sum();
        most.into_iter().map(|(s, n)| (s, n as f64 / whole.max(1) as f64)).collect()
    }
}

/// Time of which the state is known: running, queued, blocked.
fn states(a: &Account) -> [f64; 3] {
    let mut sum = [a.running.time_ns as f64 + a.gap_running_ns, a.gap_queued_ns, a.gap_blocked_ns];
    for ((_, kind), t) in &a.tallies {
        match *kind {
            QUEUED => sum[1] += t.time_ns as f64 + t.gap_ns,
            k if k >= BLOCKED => sum[2] += t.time_ns as f64 + t.gap_ns,
            _ => {}
        }
    }
    sum
}

/// Rows of all accounts.
pub(super) fn rows(accounts: &[Account], stacks: &Stacks<'_>) -> Vec<Book> {
    let mut names: HashMap<&str, ThreadSet> = HashMap::new();
    let mut pids: HashMap<u32, ThreadSet> = HashMap::new();
    for a in accounts {
        names.entry(&a.name).or_default().add(a);
        pids.entry(a.pid).or_default().add(a);
    }
    let shares_of_names: HashMap<&str, _> = names.iter().map(|(n, k)| (*n, k.shares())).collect();
    let shares_of_pids: HashMap<u32, _> = pids.iter().map(|(p, k)| (*p, k.shares())).collect();
    let nothing = ThreadSet::default();
    let build = |a: &Account| {
        let name = names.get(a.name.as_str()).unwrap_or(&nothing);
        let pid = pids.get(&a.pid).unwrap_or(&nothing);
        let shares = [shares_of_names.get(a.name.as_str()), shares_of_pids.get(&a.pid)];
        let kin_shares = shares.into_iter().flatten().find(|s| !s.is_empty()).map_or(&[][..], Vec::as_slice);
        let left = split_left(a, name);
        let mut book = Book::default();
        blocked(a, a.gap_blocked_ns + left[2], [name, pid], stacks, &mut book);
        queued(a, a.gap_queued_ns + left[1], &mut book);
        running(a, a.gap_running_ns + left[0], kin_shares, &mut book);
        if a.hidden_running_ns > 0.0 {
            book.entry((State::Running, UNKNOWN)).or_default().gap_ns += a.hidden_running_ns;
        }
        book
    };
    accounts.iter().map(build).collect()
}

/// Gap time of which not even the state is known: as the thread's other time, else as that of related threads, else as the looks at it
/// say, else it is taken to be asleep.
fn split_left(a: &Account, kin: &ThreadSet) -> [f64; 3] {
    if a.gap_left_ns <= 0.0 {
        return [0.0; 3];
    }
    let looks =
        |kind| a.tallies.iter().filter(|(k, _)| k.1 == kind).map(|(_, t)| t.events as f64).sum::<f64>();
    let choices = [states(a), kin.states, [looks(LOOK_RUNNING), 0.0, looks(LOOK_BLOCKED)], [0.0, 0.0, 1.0]];
    let parts = choices.into_iter().find(|c| c.iter().sum::<f64>() > 0.0).unwrap_or([0.0, 0.0, 1.0]);
    let whole: f64 = parts.iter().sum();
    parts.map(|p| a.gap_left_ns * p / whole)
}

fn blocked(a: &Account, gap_ns: f64, kin: [&ThreadSet; 2], stacks: &Stacks<'_>, book: &mut Book) {
    // Per stack and class of length, so that a sleep without a stack is like others of its length.
    let mut known: Vec<(u8, StackId, Row)> = Vec::new();
    let mut nameless: Vec<(u8, Row)> = Vec::new();
    for ((stack, kind), t) in a.tallies.iter().filter(|(k, _)| k.1 >= BLOCKED) {
        let row = Row {
            measured_ns: t.time_ns as f64,
            gap_ns: t.gap_ns,
            wall_ns: t.wall_ns,
            events: t.events,
            seen_ns: t.time_ns as f64,
            requests: RequestTime {
                device_ns: t.split.device_ns as f64,
                queued_ns: t.split.queued_ns as f64,
                behind_others_ns: t.split.behind_ns as f64,
                beside_others_ns: t.split.beside_ns as f64,
                ring_ns: Some(t.split.ring_ns as f64),
            },
            ..Row::default()
        };
        if *stack == UNKNOWN { nameless.push((*kind, row)) } else { known.push((*kind, *stack, row)) }
    }
    // A map has no order; sums of floats have.
    known.sort_unstable_by_key(|(kind, stack, _)| (*kind, *stack));
    nameless.sort_unstable_by_key(|(kind, _)| *kind);
    let mut rows = known.clone();
    for (kind, row) in nameless {
        let weights = like(&known, kind).or_else(|| looks(a));
        spread(kind, row, weights, stacks, &mut rows);
    }
    if gap_ns > 0.0 {
        let row = Row { gap_ns, ..Row::default() };
        let own: Vec<(StackId, f64)> = known.iter().map(|(_, s, r)| (*s, r.measured_ns)).collect();
        let of_kin = || kin.iter().map(|k| sorted(&k.asleep)).find(|w| !w.is_empty());
        let weights = looks(a).or((!own.is_empty()).then_some(own)).or_else(of_kin);
        spread(BLOCKED, row, weights, stacks, &mut rows);
    }
    if a.hidden_wall_ns + a.hidden_blocked_ns > 0.0 {
        let hidden = Row { gap_ns: a.hidden_blocked_ns, wall_ns: a.hidden_wall_ns, ..Row::default() };
        rows.push((BLOCKED, UNKNOWN, hidden));
    }
    move_to_queue(a.wake_ns as f64, &mut rows, stacks, book);
    for (_, stack, row) in rows {
        merge(book.entry((State::Blocked, stack)).or_default(), &row);
    }
}

fn sorted(of: &FastMap<StackId, f64>) -> Vec<(StackId, f64)> {
    let mut list: Vec<(StackId, f64)> = of.iter().map(|(s, w)| (*s, *w)).collect();
    list.sort_unstable_by_key(|(s, _)| *s);
    list
}

/// Weights of the stacks that were seen in sleeps of the nearest length.
fn like(known: &[(u8, StackId, Row)], kind: u8) -> Option<Vec<(StackId, f64)>> {
    let seen = known.iter().filter(|(_, _, r)| r.measured_ns > 0.0);
    let nearest = seen.clone().map(|(k, ..)| k.abs_diff(kind)).min()?;
    Some(seen.filter(|(k, ..)| k.abs_diff(kind) == nearest).map(|(_, s, r)| (*s, r.measured_ns)).collect())
}

/// Weights of the stacks that looks found while no switches were recorded.
fn looks(a: &Account) -> Option<Vec<(StackId, f64)>> {
    let found = a.tallies.iter().filter(|(k, _)| k.1 == LOOK_BLOCKED);
    let mut weights: Vec<(StackId, f64)> = found.map(|((s, _), t)| (*s, t.events as f64)).collect();
    weights.sort_unstable_by_key(|(s, _)| *s);
    (!weights.is_empty()).then_some(weights)
}

/// Spreads a row over stacks by weight. Its wall time goes to those on the path; if there is none, nobody was active,
/// and it is given back.
fn spread(
    kind: u8,
    row: Row,
    weights: Option<Vec<(StackId, f64)>>,
    stacks: &Stacks<'_>,
    rows: &mut Vec<(u8, StackId, Row)>,
) {
    let weights = weights.filter(|w| w.iter().map(|(_, w)| w).sum::<f64>() > 0.0);
    let Some(weights) = weights else {
        rows.push((kind, UNKNOWN, row));
        return;
    };
    let whole: f64 = weights.iter().map(|(_, w)| w).sum();
    let on_path: f64 = weights.iter().filter(|(s, _)| stacks.on_path(*s)).map(|(_, w)| w).sum();
    for (stack, weight) in weights {
        let part = weight / whole;
        let wall_ns =
            if stacks.on_path(stack) && on_path > 0.0 { row.wall_ns * weight / on_path } else { 0.0 };
        rows.push((
            kind,
            stack,
            Row { measured_ns: row.measured_ns * part, gap_ns: row.gap_ns * part, wall_ns, ..Row::default() },
        ));
    }
}

/// A sleep as the switches show it ends when the thread gets a CPU; what it waited for one after its wake-up belongs to
/// the queue. It is taken from the sleeps evenly by their number, from each row at most what it holds.
fn move_to_queue(mut wake_ns: f64, rows: &mut [(u8, StackId, Row)], stacks: &Stacks<'_>, book: &mut Book) {
    let mut order: Vec<usize> = (0..rows.len()).filter(|i| rows[*i].2.events > 0).collect();
    let each = |r: &Row| r.measured_ns / r.events as f64;
    order.sort_by(|a, b| each(&rows[*a].2).total_cmp(&each(&rows[*b].2)).then(a.cmp(b)));
    let mut sleeps: u64 = order.iter().map(|i| rows[*i].2.events).sum();
    for index in order {
        if wake_ns <= 0.0 || sleeps == 0 {
            return;
        }
        let (_, stack, row) = &mut rows[index];
        let moved = (wake_ns * row.events as f64 / sleeps as f64).min(row.measured_ns);
        sleeps -= row.events;
        if moved <= 0.0 {
            continue;
        }
        wake_ns -= moved;
        let wall = row.wall_ns * (moved / row.measured_ns).min(1.0);
        row.measured_ns -= moved;
        // It comes after the completion of the request.
        let seen = moved.min(row.seen_ns);
        row.seen_ns -= seen;
        row.wall_ns = (row.wall_ns - wall).max(0.0);
        let queued = book.entry((State::Queued, *stack)).or_default();
        queued.seen_ns += seen;
        if stacks.on_path(*stack) {
            queued.measured_ns += moved;
            queued.wall_ns += wall;
        } else {
            // While it slept it had no part of the wall clock; while it is queued it has one.
            queued.moved_ns += moved;
            queued.wall_ns += wall;
        }
    }
}

fn queued(a: &Account, gap_ns: f64, book: &mut Book) {
    for ((stack, _), t) in a.tallies.iter().filter(|(k, _)| k.1 == QUEUED) {
        let row = Row {
            measured_ns: t.time_ns as f64,
            gap_ns: t.gap_ns,
            wall_ns: t.wall_ns,
            events: t.events,
            seen_ns: t.time_ns as f64,
            ..Row::default()
        };
        merge(book.entry((State::Queued, *stack)).or_default(), &row);
    }
    if gap_ns > 0.0 {
        book.entry((State::Queued, UNKNOWN)).or_default().gap_ns += gap_ns;
    }
}

/// Exact running time by the fractions of samples: samples alone miss part of the time of threads that sleep often.
fn running(a: &Account, gap_ns: f64, kin: &[(StackId, f64)], book: &mut Book) {
    let own: Vec<(StackId, u64)> =
        a.tallies.iter().filter(|(k, _)| k.1 == RUNNING).map(|((s, _), t)| (*s, t.events)).collect();
    let n: u64 = own.iter().map(|(_, n)| n).sum();
    let prior = if n >= ENOUGH || kin.is_empty() { 0.0 } else { PRIOR };
    let whole = n as f64 + prior;
    let mut weights: FastMap<StackId, (f64, u64)> = FastMap::default();
    for (stack, events) in own {
        weights.insert(stack, (events as f64, events));
    }
    if prior > 0.0 {
        for (stack, share) in kin {
            weights.entry(*stack).or_default().0 += prior * share;
        }
    }
    if whole <= 0.0 {
        weights.insert(UNKNOWN, (1.0, 0));
    }
    for (stack, (weight, events)) in weights {
        let part = weight / whole.max(1.0);
        let row = Row {
            measured_ns: a.running.time_ns as f64 * part,
            gap_ns: gap_ns * part,
            wall_ns: a.running.wall_ns * part,
            seen_ns: a.running.time_ns as f64 * part,
            events,
            ..Row::default()
        };
        merge(book.entry((State::Running, stack)).or_default(), &row);
    }
}

fn merge(into: &mut Row, row: &Row) {
    into.measured_ns += row.measured_ns;
    into.gap_ns += row.gap_ns;
    into.moved_ns += row.moved_ns;
    into.wall_ns += row.wall_ns;
    into.gap_wall_ns += row.gap_wall_ns;
    into.moved_wall_ns += row.moved_wall_ns;
    into.events += row.events;
    into.seen_ns += row.seen_ns;
    into.requests.device_ns += row.requests.device_ns;
    into.requests.queued_ns += row.requests.queued_ns;
    into.requests.behind_others_ns += row.requests.behind_others_ns;
    into.requests.beside_others_ns += row.requests.beside_others_ns;
    if let Some(more) = row.requests.ring_ns {
        *into.requests.ring_ns.get_or_insert(0.0) += more;
    }
}

/// Makes the shortest-lived threads of one name one, until the rows are few enough. The first thread is the program itself and stays, pools
/// are last.
pub(super) fn pool(mut accounts: Vec<Account>, mut books: Vec<Book>) -> (Vec<Account>, Vec<Book>) {
    let mut rows: usize = books.iter().map(Book::len).sum();
    let mut pools: HashMap<String, usize> = (0..accounts.len())
        .filter(|i| !accounts[*i].individual)
        .map(|i| (accounts[i].name.clone(), i))
        .collect();
    let mut shortest: Vec<usize> = (1..accounts.len()).filter(|i| accounts[*i].individual).collect();
    shortest.sort_by_key(|i| (accounts[*i].lifetime_ns, std::cmp::Reverse(*i)));
    let mut gone = vec![false; accounts.len()];
    for index in shortest {
        if rows <= TOLD_APART {
            break;
        }
        let pool = match pools.get(&accounts[index].name) {
            Some(pool) => *pool,
            // The first of its name becomes the pool.
            None => {
                pools.insert(accounts[index].name.clone(), index);
                continue;
            }
        };
        let (account, book) = (std::mem::take(&mut accounts[index]), std::mem::take(&mut books[index]));
        gone[index] = true;
        accounts[pool].individual = false;
        accounts[pool].merge(account);
        let before = book.len() + books[pool].len();
        for (key, row) in &book {
            merge(books[pool].entry(*key).or_default(), row);
        }
        rows -= before - books[pool].len();
    }
    let order = |wanted: bool| {
        let (accounts, gone) = (&accounts, &gone);
        (0..accounts.len()).filter(move |i| !gone[*i] && accounts[*i].individual == wanted)
    };
    let order: Vec<usize> = order(true).chain(order(false)).collect();
    order.into_iter().map(|i| (std::mem::take(&mut accounts[i]), std::mem::take(&mut books[i]))).unzip()
}

/// Which requests were followed.
#[derive(Clone, Copy)]
pub(super) struct Followed {
    /// Those at devices.
    pub(super) devices: bool,
    /// Those of rings on files.
    pub(super) rings: bool,
}

/// Threads and stacks as the profile has them: whole nanoseconds for threads, and stacks that sum to them.
pub(super) fn publish(
    books: Vec<Book>,
    accounts: &[Account],
    stacks: &Stacks<'_>,
    followed: Followed,
) -> (Vec<Thread>, Vec<StackTime>) {
    let mut threads = Vec::new();
    let mut list: Vec<Line> = Vec::new();
    for (a, book) in accounts.iter().zip(books) {
        let index = threads.len() as u32;
        let sum = |state| -> f64 {
            book.iter()
                .filter(|(k, _)| k.0 == state)
                .map(|(_, r)| r.measured_ns + r.gap_ns + r.moved_ns)
                .sum()
        };
        let (run, queue) = (sum(State::Running), sum(State::Queued));
        let running_ns = (run.round() as u64).min(a.lifetime_ns);
        let queued_ns = (queue.round() as u64).min(a.lifetime_ns - running_ns);
        let blocked_ns = a.lifetime_ns - running_ns - queued_ns;
        let block = sum(State::Blocked);
        for (state, whole, found) in [
            (State::Running, running_ns, run),
            (State::Queued, queued_ns, queue),
            (State::Blocked, blocked_ns, block),
        ] {
            if whole > 0 && found <= 0.0 {
                list.push(Line { time_ns: whole as f64, ..Line::new(index, state, UNKNOWN) });
            }
            let scale = if found > 0.0 { whole as f64 / found } else { 0.0 };
            for ((_, stack), r) in book.iter().filter(|(k, _)| k.0 == state) {
                let time_ns = (r.measured_ns + r.gap_ns + r.moved_ns) * scale;
                let wall_ns = r.wall_ns + r.gap_wall_ns + r.moved_wall_ns;
                let (seen_ns, requests) = r.seen(time_ns, scale);
                if time_ns > 0.0 || wall_ns > 0.0 || r.events > 0 {
                    let line = Line::new(index, state, *stack);
                    list.push(Line { time_ns, wall_ns, events: r.events, seen_ns, requests, ..line });
                }
            }
        }
        threads.push(Thread {
            pid: a.pid,
            tid: a.tid,
            name: a.name.clone(),
            count: a.count,
            lifetime_ns: a.lifetime_ns,
            running_ns,
            queued_ns,
            blocked_ns,
            sleeps: a.sleeps,
            preemptions: a.preemptions,
            samples: a.samples,
        });
    }
    sort(&mut list);
    if list.len() > MAX_ROWS {
        let mut rest: FastMap<(u32, State), Line> = FastMap::default();
        for line in list.drain(MAX_ROWS..) {
            let sum =
                rest.entry((line.thread, line.state)).or_insert(Line::new(line.thread, line.state, UNKNOWN));
            // Without its stack, what its requests did means nothing.
            sum.time_ns += line.time_ns;
            sum.wall_ns += line.wall_ns;
            sum.seen_ns += line.seen_ns;
            sum.events += line.events;
        }
        list.extend(rest.into_values());
        sort(&mut list);
    }
    (threads, list.into_iter().map(|line| line.publish(stacks, followed)).collect())
}

/// A row of the result.
#[derive(Clone, Copy)]
struct Line {
    thread: u32,
    state: State,
    stack: StackId,
    time_ns: f64,
    wall_ns: f64,
    events: u64,
    seen_ns: f64,
    requests: RequestTime,
}

impl Line {
    fn new(thread: u32, state: State, stack: StackId) -> Line {
        let requests = RequestTime::default();
        Line { thread, state, stack, time_ns: 0.0, wall_ns: 0.0, events: 0, seen_ns: 0.0, requests }
    }

    fn publish(self, stacks: &Stacks<'_>, followed: Followed) -> StackTime {
        let (kernel, user, known) = stacks.frames(self.stack);
        let known_requests = followed.devices && self.state == State::Blocked && self.seen_ns > 0.0;
        StackTime {
            thread: self.thread,
            state: self.state,
            kernel: kernel.to_vec(),
            user: user.to_vec(),
            known,
            time_ns: self.time_ns,
            wall_ns: self.wall_ns,
            events: self.events,
            seen_ns: self.seen_ns,
            requests: known_requests.then_some(RequestTime {
                ring_ns: self.requests.ring_ns.filter(|_| followed.rings),
                ..self.requests
            }),
        }
    }
}

fn sort(list: &mut [Line]) {
    let key = |l: &Line| (l.thread, l.state, l.stack);
    list.sort_by(|a, b| b.time_ns.total_cmp(&a.time_ns).then(key(a).cmp(&key(b))));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_shortest_lived_threads_of_a_name_become_one_and_nothing_is_lost() {
        const THREADS: u32 = 400;
        const STACKS: u32 = 100;
        let account = |n: u32| {
            let name = ["main", "cc", "as", "alone"][if n == 0 {
                0
            } else if n == 7 {
                3
            } else {
                1 + n as usize % 2
            }];
            Account { lifetime_ns: 1000 + u64::from(n), ..Account::new(n, n, name.to_owned()) }
        };
        let row = Row { measured_ns: 2.0, wall_ns: 1.0, events: 3, ..Row::default() };
        let book = |_| (0..STACKS).map(|stack| ((State::Running, stack), row)).collect::<Book>();
        let few = TOLD_APART as u32 / STACKS;
        let (accounts, books) = pool((0..few).map(account).collect(), (0..few).map(book).collect());
        assert_eq!((accounts.len(), books.len()), (few as usize, few as usize), "they are few enough");
        let (accounts, books) = pool((0..THREADS).map(account).collect(), (0..THREADS).map(book).collect());
        assert!(books.iter().map(Book::len).sum::<usize>() <= TOLD_APART);
        assert_eq!((accounts[0].name.as_str(), accounts[0].count), ("main", 1));
        let pools: Vec<&Account> = accounts.iter().filter(|a| !a.individual).collect();
        let last = &accounts[accounts.len() - 2..];
        assert!(pools.len() == 2 && last.iter().all(|a| !a.individual && a.count > 1), "pools are last");
        assert!(accounts.iter().any(|a| a.name == "alone" && a.count == 1), "it has no kin");
        assert!(accounts.iter().any(|a| a.tid == THREADS - 1), "the longest-lived one is told apart");
        assert_eq!(accounts.iter().map(|a| a.count).sum::<u64>(), u64::from(THREADS));
        let rows = || books.iter().flat_map(|book| book.values());
        assert_eq!(rows().map(|r| r.measured_ns).sum::<f64>(), 2.0 * f64::from(THREADS * STACKS));
        assert_eq!(rows().map(|r| r.events).sum::<u64>(), 3 * u64::from(THREADS * STACKS));
    }
}

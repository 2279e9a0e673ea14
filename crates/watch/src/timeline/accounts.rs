//! All accounts: one for each thread while it lives; of the dead, the longest-lived keep theirs and the others are
//! pooled by name.

use std::collections::HashMap;

use super::account::Account;

/// Most threads that are told apart in the result.
pub(super) const MAX_INDIVIDUAL: usize = 512;
/// Most living threads with an account of their own.
const MAX_LIVING: usize = 8192;
/// Most pools with a name of their own.
const MAX_POOLS: usize = 256;
/// Name of the pool of all that have no pool of their own.
const OTHERS: &str = "(others)";

/// The accounts. An index stays valid while its thread lives; pools live for ever.
#[derive(Default)]
pub(super) struct Accounts {
    list: Vec<Account>,
    free: Vec<u32>,
    dead: Vec<u32>,
    pools: HashMap<String, u32>,
    living: usize,
    /// Tallies of all accounts together.
    pub(super) tallies: usize,
}

impl Accounts {
    /// An account for a new thread.
    pub(super) fn open(&mut self, pid: u32, tid: u32, name: &str) -> u32 {
        if self.living >= MAX_LIVING {
            let pool = self.pool(pid, tid, name);
            self.list[pool as usize].count += 1;
            return pool;
        }
        self.living += 1;
        self.insert(Account::new(pid, tid, name.to_owned()))
    }

    fn insert(&mut self, account: Account) -> u32 {
        match self.free.pop() {
            Some(index) => {
                self.list[index as usize] = account;
                index
            }
            None => {
                self.list.push(account);
                (self.list.len() - 1) as u32
            }
        }
    }

    fn pool(&mut self, pid: u32, tid: u32, name: &str) -> u32 {
        let name = if self.pools.contains_key(name) || self.pools.len() < MAX_POOLS { name } else { OTHERS };
        if let Some(index) = self.pools.get(name) {
            return *index;
        }
        let empty = Account { count: 0, individual: false, ..Account::new(pid, tid, name.to_owned()) };
        let index = self.insert(empty);
        self.pools.insert(name.to_owned(), index);
        index
    }

    /// The thread of this account is gone. Returns whether dead threads should be pooled ([`Accounts::prune`]).
    pub(super) fn close(&mut self, index: u32) -> bool {
        if self.list[index as usize].individual {
            self.living = self.living.saturating_sub(1);
            self.dead.push(index);
        }
        self.dead.len() >= 2 * MAX_INDIVIDUAL
    }

    /// Pools the dead but the first thread and the longest-lived ones.
    pub(super) fn prune(&mut self) {
        let Some(surplus) = self.dead.len().checked_sub(MAX_INDIVIDUAL).filter(|s| *s > 0) else { return };
        // The first thread of all has index 0 and is the program itself.
        let rank = |list: &[Account], i: u32| (i == 0, list[i as usize].lifetime_ns, std::cmp::Reverse(i));
        let list = &self.list;
        self.dead.select_nth_unstable_by_key(surplus, |i| rank(list, *i));
        let pooled: Vec<u32> = self.dead.drain(..surplus).collect();
        for index in pooled {
            let account = std::mem::take(&mut self.list[index as usize]);
            self.free.push(index);
            let pool = self.pool(account.pid, account.tid, &account.name);
            let shared = self.list[pool as usize].merge(account);
            self.tallies = self.tallies.saturating_sub(shared);
        }
    }

    #[inline]
    pub(super) fn get(&mut self, index: u32) -> &mut Account {
        &mut self.list[index as usize]
    }

    /// An account together with the number of all tallies.
    #[inline]
    pub(super) fn book(&mut self, index: u32) -> (&mut Account, &mut usize) {
        (&mut self.list[index as usize], &mut self.tallies)
    }

    /// How many accounts are held, pools included.
    #[cfg(test)]
    pub(super) fn held(&self) -> usize {
        self.list.len() - self.free.len()
    }

    /// All accounts in the end, in the order in which their threads appeared; pools last.
    pub(super) fn into_list(mut self) -> Vec<Account> {
        self.prune();
        let mut order: Vec<u32> = self.dead.clone();
        order.sort_unstable();
        let mut pools: Vec<u32> = self.pools.values().copied().collect();
        pools.sort_unstable();
        order.extend(pools);
        order.into_iter().map(|i| std::mem::take(&mut self.list[i as usize])).collect()
    }
}

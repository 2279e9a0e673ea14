//! The servers: how each is prepared, started, set and loaded. All texts are commands of `sh`, run in a folder of their own with `$on`
//! (1: a sync for each reply), `$n` requests and `$s` seconds.

use rustix::process::Signal;

/// A server, or a program with the engine of one.
pub(super) struct Server {
    pub(super) name: &'static str,
    /// The setting and its two values.
    pub(super) setting: &'static str,
    /// Whether the threads that answer sync no more with the second one: that is what is predicted.
    pub(super) removes_syncs: bool,
    /// Programs without which it cannot run.
    pub(super) needs: &'static [&'static str],
    pub(super) prepare: &'static str,
    /// Runs until it is told to end; empty: the load is the program.
    pub(super) serve: &'static str,
    /// Ends it without waiting for clients.
    pub(super) stop: Signal,
    /// Succeeds when it serves.
    pub(super) ready: &'static str,
    /// Changes the setting.
    pub(super) set: &'static str,
    /// Prints the rate of its requests.
    pub(super) load: &'static str,
}

const PG: Server = Server {
    name: "",
    setting: "synchronous_commit on -> off",
    removes_syncs: true,
    needs: &["postgres", "initdb", "pgbench", "psql"],
    prepare: "initdb -D data -A trust -U u --no-sync",
    serve: "exec postgres -D data -k $PWD -c listen_addresses=''",
    // Fast shutdown.
    stop: Signal::INT,
    ready: "psql -h $PWD -U u -c 'select 1' postgres && pgbench -h $PWD -U u -i -s 10 -q postgres",
    set: "",
    load: "",
};

/// In the order of the table.
pub(super) const SERVERS: [Server; 7] = [
    Server {
        name: "Redis, 1 client",
        load: "redis-benchmark -s s -t set -c 1 -d 100 -r 100000 -n $n --csv | sed -n 's/^\"SET\",\"\\([0-9.]*\\).*/\\1/p'",
        ..REDIS
    },
    Server {
        name: "Redis, 50 clients",
        load: "redis-benchmark -s s -t set -c 50 -d 100 -r 100000 -n $n --csv | sed -n 's/^\"SET\",\"\\([0-9.]*\\).*/\\1/p'",
        ..REDIS
    },
    Server {
        name: "PostgreSQL, 1 client",
        load: "PGOPTIONS=\"-c synchronous_commit=$([ $on = 1 ] && echo on || echo off)\" pgbench -h $PWD -U u -n -c 1 -T $s postgres | \
               sed -n 's/^tps = \\([0-9.]*\\).*/\\1/p'",
        ..PG
    },
    Server {
        name: "PostgreSQL, 8 clients",
        load: "PGOPTIONS=\"-c synchronous_commit=$([ $on = 1 ] && echo on || echo off)\" pgbench -h $PWD -U u -n -c 8 -T $s postgres | \
               sed -n 's/^tps = \\([0-9.]*\\).*/\\1/p'",
        ..PG
    },
    Server {
        name: "PostgreSQL, 8 clients",
        setting: "commit_delay 0 -> 1000 us",
        removes_syncs: false,
        load: "PGOPTIONS=\"-c commit_delay=$([ $on = 1 ] && echo 0 || echo 1000)\" pgbench -h $PWD -U u -n -c 8 -T $s postgres | \
               sed -n 's/^tps = \\([0-9.]*\\).*/\\1/p'",
        ..PG
    },
    Server {
        name: "MariaDB, 4 clients",
        setting: "innodb_flush_log_at_trx_commit 1 -> 2",
        removes_syncs: true,
        needs: &["mariadbd", "mariadb-install-db", "mariadb-slap", "mariadb"],
        prepare: "mariadb-install-db --no-defaults --datadir=$PWD/data --auth-root-authentication-method=normal --skip-test-db",
        serve: "exec mariadbd --no-defaults --datadir=$PWD/data --socket=$PWD/s --skip-networking --skip-grant-tables --tmpdir=$PWD \
                --pid-file=$PWD/pid",
        stop: Signal::TERM,
        ready: "mariadb --no-defaults -S s -e 'create database if not exists d; create table if not exists d.t \
                (a int auto_increment primary key, b char(100)) engine=innodb'",
        set: "mariadb --no-defaults -S s -e \"set global innodb_flush_log_at_trx_commit = $((2 - on))\"",
        load: "mariadb-slap --no-defaults -S s --concurrency=4 --create-schema=d --no-drop --number-of-queries=$n \
               --query=\"insert into t (b) values ('x')\" | awk -v n=$n '/Average number of seconds/ { print n / $(NF - 1) }'",
    },
    Server {
        name: "RocksDB, 1 thread",
        setting: "db_bench --sync=1 -> 0",
        removes_syncs: true,
        needs: &["db_bench"],
        prepare: "",
        serve: "",
        stop: Signal::TERM,
        ready: "",
        set: "",
        load: "db_bench --benchmarks=fillrandom --db=$PWD/db --num=1000000 --duration=$s --value_size=100 --sync=$on | \
               awk '/^fillrandom/ { for (i = 1; i < NF; i++) if ($(i + 1) == \"ops/sec\") print $i }'",
    },
];

const REDIS: Server = Server {
    name: "",
    setting: "appendfsync always -> everysec",
    removes_syncs: true,
    needs: &["redis-server", "redis-cli", "redis-benchmark"],
    prepare: "",
    // A rewrite of its file in the middle of a load would be another load.
    serve: "exec redis-server --port 0 --unixsocket $PWD/s --appendonly yes --appendfsync always --save '' \
            --auto-aof-rewrite-percentage 0",
    stop: Signal::TERM,
    ready: "redis-cli -s s ping",
    set: "redis-cli -s s config set appendfsync $([ $on = 1 ] && echo always || echo everysec)",
    load: "",
};

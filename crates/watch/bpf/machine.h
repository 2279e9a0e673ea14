/* SPDX-License-Identifier: MIT OR GPL-2.0
 * The whole machine: every wait for a device, for memory or for the server of a file system, of every task, told once when it ends.
 * What PSI counts is taken from the kernel's own flags of a task (psi_flags), on the CPU that PSI charges. Attached for `--all` and, with the
 * sleeps of timed calls (`tails.h`), for `attach --when`. Each of the two has programs of its own: neither pays for the other.
 * Part of observer.bpf.c. */

enum {
	MAX_CPUS = 1024,
	/* Tasks asleep at the same time that are followed, and calls to user-space file systems. The loader makes room for them. */
	MAX_WAITS = 32768,
	MAX_ASKED = 8192,
	MAX_STACKS = 8192,
	MAX_DIRTIED = 16384,
};

/* Why a task waits. The first two are PSI's, with the kernel's numbers (enum psi_task_count): TSK_IOWAIT, TSK_MEMSTALL. */
enum {
	WAITS_IO = 1,
	WAITS_MEMORY = 2,
	WAITS_BLOCKED = 4,
	WAITS_SERVER = 8,
	RECLAIMS = 16,
	KERNEL_THREAD = 32,
	WOKEN_BY_KERNEL = 64,
	/* A sleep of a task that reclaims: a part of that, which is told as well. */
	IN_RECLAIM = 128,
	/* 256 and 512 are those of tails.h. It had been woken before it slept. */
	WOKEN_BEFORE = 1024,
};

/* Whoever waits for a request is woken at once by the interrupt that ends it, which walks over all its pages before: no more than that. */
enum { WAKES_WITHIN_NS = 50000 };

/* States of a task: TASK_UNINTERRUPTIBLE, TASK_DEAD of one that never runs again, and TASK_NOLOAD of those that only idle. */
enum { UNINTERRUPTIBLE = 2, DEAD = 0x80, NO_LOAD = 0x400 };

/* A task asleep, or in reclaim. */
struct wait {
	u64 since_ns;
	u32 pid;
	u32 cpu;
	u32 flags;
	s32 stack;
	char task[COMM_BYTES];
};

struct wait_event {
	EVENT_HEAD;
	u32 lost;
	struct wait wait;
	/* Who woke it: the task on the CPU, or, where that was interrupted, whoever; all 0: not known. */
	u32 waker_pid;
	u32 waker_tid;
	/* The device whose request was done on this CPU just before; both 0: none was. */
	u32 major;
	u32 minor;
	char waker[COMM_BYTES];
};

/* Sums of a CPU. Those that begin with a verb in -ed are read as they are; the others make them. */
struct cpu_times {
	/* Idle, and no task that last ran here waits: PSI does not count the CPU then. */
	u64 unused_ns;
	/* Idle while a task that last ran here waits for I/O, or for memory. */
	u64 idle_io_ns;
	u64 idle_memory_ns;
	/* At least one task was runnable and had no CPU. */
	u64 queued_ns;
	/* Since when it is idle; 0: it is not. */
	u64 idle_since_ns;
	u64 io_waits;
	u64 memory_waits;
	u64 waits;
	/* When the last of each ended. */
	u64 io_ended_ns;
	u64 memory_ended_ns;
	u64 ended_ns;
	/* The last switch, by the run queue's clock, and whether a task was queued then. */
	u64 switched_at;
	u64 contended;
	/* A request that was done here since the last switch: major and minor number. */
	u64 done;
	u64 switches;
	/* When that request was done. */
	u64 done_ns;
};

/* Who wrote into a file last. */
struct writer {
	u32 pid;
	char task[COMM_BYTES];
};

MAP(BPF_MAP_TYPE_ARRAY, u32, struct cpu_times, 1, 0) cpu_times SEC(".maps");
/* By thread number; of reclaim the number with the upper half set. Allocated beforehand: a switch is no place to wait for memory. */
MAP(BPF_MAP_TYPE_HASH, u64, struct wait, 1, 0) waits SEC(".maps");
MAP(BPF_MAP_TYPE_HASH, u32, u32, 1, 0) asked SEC(".maps");
MAP(BPF_MAP_TYPE_LRU_HASH, u64, struct writer, 1, 0) writers SEC(".maps");
struct {
	int (*type)[BPF_MAP_TYPE_STACK_TRACE];
	int (*max_entries)[1];
	int (*key_size)[sizeof(u32)];
	int (*value_size)[MAX_FRAMES * sizeof(u64)];
} stacks SEC(".maps");
MAP(BPF_MAP_TYPE_ARRAY, u32, struct machine_lost, 1, 0) machine_losses SEC(".maps");

/* Whether a task ever asked a user-space file system. */
u32 has_asked = 0;

#define lose_of_machine(what) ({ \
	u32 zero__ = 0; \
	struct machine_lost *lost__ = map_lookup(&machine_losses, &zero__); \
	if (lost__) \
		add(lost__->what, 1); \
})

static inline_always struct cpu_times *times_of(u32 cpu)
{
	return map_lookup(&cpu_times, &cpu);
}

/* What of an idle stretch lies before (or, `after`, behind) the end of the last wait. */
static inline_always u64 idle_part(u64 since, u64 now, u64 waits, u64 ended, u32 after)
{
	u64 border = ended < since ? since : ended > now ? now : ended;
	if (waits)
		border = now;
	return after ? now - border : border - since;
}

static inline_always void leave_idle(struct cpu_times *times, u64 now)
{
	u64 since = times->idle_since_ns;
	if (!since || since > now)
		return;
	times->unused_ns += idle_part(since, now, times->waits, times->ended_ns, 1);
	times->idle_io_ns += idle_part(since, now, times->io_waits, times->io_ended_ns, 0);
	times->idle_memory_ns += idle_part(since, now, times->memory_waits, times->memory_ended_ns, 0);
	times->idle_since_ns = 0;
}

static inline_always void count_wait(const struct wait *wait, u64 change, u64 now)
{
	if (!(wait->flags & (WAITS_IO | WAITS_MEMORY)))
		return;
	struct cpu_times *times = times_of(wait->cpu);
	if (!times)
		return;
	add(times->waits, change);
	if (wait->flags & WAITS_IO)
		add(times->io_waits, change);
	if (wait->flags & WAITS_MEMORY)
		add(times->memory_waits, change);
	if (change == 1)
		return;
	times->ended_ns = now;
	if (wait->flags & WAITS_IO)
		times->io_ended_ns = now;
	if (wait->flags & WAITS_MEMORY)
		times->memory_ended_ns = now;
}

/* An end that was not told: a kernel may refuse to run programs while some task is on the CPU. */
static inline_always void begin_wait(u64 key, const struct wait *wait)
{
	struct wait *missed = map_lookup(&waits, &key);
	if (missed && missed->since_ns) {
		lose_of_machine(events);
		count_wait(missed, -1, wait->since_ns);
	}
	if (map_update(&waits, &key, wait, BPF_ANY)) {
		lose_of_machine(waits);
		return;
	}
	count_wait(wait, 1, wait->since_ns);
}

/* A wait is over: it is told, and forgotten. To take it out of the table may fail, where another CPU is at the same place: one without a
 * beginning is none. `is_woken_here`: whatever this CPU does ends it. */
static inline_always void end_wait(u64 key, u32 tid, struct wait *wait, u64 now, u32 is_woken_here, const u32 timed)
{
	count_wait(wait, -1, now);
	if (timed && wait->flags & IN_CALL)
		call_wakes(tid, wait->since_ns, now);
	struct wait_event *event = ringbuf_reserve(&requests, sizeof(*event), 0);
	if (!event) {
		lose_of_machine(events);
		wait->since_ns = 0;
		map_delete(&waits, &key);
		return;
	}
	event->type = SAMPLE;
	event->misc = 0;
	event->size = sizeof(*event);
	event->identity = IDENTITIES | WAITED;
	event->pid = wait->pid;
	event->tid = tid;
	event->time_ns = now;
	u32 cpu = get_smp_processor_id();
	event->cpu = cpu;
	event->lost = 0;
	event->wait = *wait;
	wait->since_ns = 0;
	u64 waker = is_woken_here ? get_current_pid_tgid() : 0;
	event->waker_pid = waker >> 32;
	event->waker_tid = waker;
	struct cpu_times *times = times_of(cpu);
	u64 done = is_woken_here && times && now < times->done_ns + WAKES_WITHIN_NS ? times->done : 0;
	event->major = done >> 32;
	event->minor = done;
	struct task_struct *current = get_current_task();
	/* PF_KTHREAD */
	if (is_woken_here && READ(current, flags) >> 21 & 1)
		event->wait.flags |= WOKEN_BY_KERNEL;
	if (is_woken_here)
		get_current_comm(event->waker, COMM_BYTES);
	else
		event->waker[0] = 0;
	u64 waiting = ringbuf_query(&requests, BPF_RB_AVAIL_DATA);
	ringbuf_submit(event, waiting > REQUEST_BYTES / 2 ? BPF_RB_FORCE_WAKEUP : BPF_RB_NO_WAKEUP);
	map_delete(&waits, &key);
}

/* What the kernel itself says of the task for PSI; 0 where it counts no PSI. */
static inline_always u32 psi_flags(struct task_struct *task)
{
	if (!EXISTS(struct task_struct, psi_flags))
		return 0;
	return READ(task, psi_flags) & (WAITS_IO | WAITS_MEMORY);
}

/* Tasks that could run on a CPU, the one that does included. Since Linux 6.12 the others count tasks that sleep and have not left yet. */
static inline_always u32 runnable(struct rq *queue)
{
	if (EXISTS(struct cfs_rq, h_nr_runnable))
		return READ(queue, cfs.h_nr_runnable) + READ(queue, rt.rt_nr_running);
	return READ(queue, nr_running);
}

/* Adds the time since the last switch of this CPU in which a task was queued: all of it, where one was at its beginning, else from when
 * the one that gets the CPU now came. */
static inline_always void queued(struct cpu_times *times, struct task_struct *next, u32 is_idle)
{
	if (!EXISTS(struct sched_info, last_queued))
		return;
	struct cfs_rq *tasks = READ(next, se.cfs_rq);
	struct rq *queue = READ(tasks, rq);
	u64 now = READ(queue, clock), from = times->switched_at;
	if (!times->contended) {
		u64 came = is_idle ? 0 : READ(next, sched_info.last_queued);
		from = came < from ? from : came;
		if (!came)
			from = now;
	}
	if (from && from < now)
		times->queued_ns += now - from;
	times->switched_at = now;
	times->contended = runnable(queue) > 1;
}

static inline_always void describe(struct wait *wait, struct task_struct *task, u64 now)
{
	wait->since_ns = now;
	wait->pid = get_current_pid_tgid() >> 32;
	wait->cpu = get_smp_processor_id();
	/* PF_KTHREAD */
	if (READ(task, flags) >> 21 & 1)
		wait->flags |= KERNEL_THREAD;
	get_current_comm(wait->task, COMM_BYTES);
}

/* A wait under this key is none any more, and nobody is to be told. */
static inline_always void forget_wait(u64 key, u64 now)
{
	struct wait *wait = map_lookup(&waits, &key);
	if (!wait)
		return;
	if (wait->since_ns) {
		wait->since_ns = 0;
		count_wait(wait, -1, now);
	}
	map_delete(&waits, &key);
}

/* A thread leaves its CPU for the last time: nothing of it stays in the tables. What it did not get out of them before (to take an entry out
 * may fail) would stay until another thread gets its number. */
static inline_always void forget_thread(u32 tid, u64 now)
{
	if (has_asked && map_lookup(&asked, &tid))
		map_delete(&asked, &tid);
	forget_wait(tid, now);
	forget_wait(tid | 1ULL << 32, now);
}

/* A CPU goes from the current task to another one. `timed`, known when this is compiled: calls are timed. */
static inline_always int any_switch(u64 *context, const u32 timed)
{
	struct task_struct *previous = (void *)context[1], *next = (void *)context[2];
	struct cpu_times *times = times_of(get_smp_processor_id());
	if (!times)
		return 0;
	u64 now = ktime_get_ns();
	u32 tid = get_current_pid_tgid(), next_tid = READ(next, pid);
	times->done = 0;
	/* Until its first switch a CPU is taken for idle. */
	if (!tid)
		leave_idle(times, now);
	else
		times->idle_since_ns = 0;
	queued(times, next, !next_tid);
	if (next_tid) {
		/* One whose wake was not told. */
		u64 key = next_tid;
		struct wait *wait = map_lookup(&waits, &key);
		if (wait && wait->since_ns)
			end_wait(key, next_tid, wait, now, 0, timed);
		if (timed)
			call_runs(next_tid, now);
	} else {
		times->idle_since_ns = now;
	}
	if (!tid)
		return 0;
	u64 state = EXISTS(struct task_struct, __state) ? READ(previous, __state) : READ(previous, state);
	/* TASK_RUNNING is 0. One that is preempted on its way to sleep (the first argument) is still in its run queue: two CPUs could end
	 * such a wait at once, whoever wakes it and the one that runs it again. */
	if (!state || (u8)context[0]) {
		if (timed)
			call_makes_room(tid, now);
		return 0;
	}
	if (state & DEAD) {
		forget_thread(tid, now);
		return 0;
	}
	u32 flags = psi_flags(previous);
	if (state & UNINTERRUPTIBLE && !(state & NO_LOAD))
		flags |= WAITS_BLOCKED;
	if (has_asked && map_lookup(&asked, &tid)) {
		flags |= WAITS_SERVER;
		map_delete(&asked, &tid);
	}
	if (timed)
		flags |= call_sleeps(tid);
	if (!flags)
		return 0;
	u64 key = tid | 1ULL << 32;
	struct wait *around = map_lookup(&waits, &key);
	if (around && around->since_ns)
		flags |= IN_RECLAIM;
	struct wait wait = { .flags = flags };
	describe(&wait, previous, now);
	wait.stack = get_stackid(context, &stacks, 0);
	begin_wait(tid, &wait);
	times->switches++;
	return 0;
}

/* `is_queued`: it is in a run queue already. That ends the wait of a task that was woken while it was on its way to sleep: on the CPU of
 * whoever woke it, which had to wait for the switch, or on the one where it slept, which was asked to do it. */
static inline_always int woken(struct task_struct *task, const u32 is_queued, const u32 timed)
{
	u32 tid = READ(task, pid);
	u64 key = tid;
	struct wait *wait = map_lookup(&waits, &key);
	if (!wait || !wait->since_ns)
		return 0;
	if (is_queued)
		wait->flags |= WOKEN_BEFORE;
	end_wait(key, tid, wait, ktime_get_ns(), !is_queued || wait->cpu != get_smp_processor_id(), timed);
	return 0;
}

/* The same programs without and with timed calls. */
#define ON_SLEEP(name, timed) \
	SEC("raw_tp/sched_switch") \
	int on_##name##_switch(u64 *context) \
	{ \
		return any_switch(context, timed); \
	} \
	/* A task that sleeps is about to be put into a run queue: here the current task is who wakes it. */ \
	SEC("raw_tp/sched_waking") \
	int on_##name##_waking(u64 *context) \
	{ \
		return woken((struct task_struct *)context[0], 0, timed); \
	} \
	SEC("raw_tp/sched_wakeup") \
	int on_##name##_woken(u64 *context) \
	{ \
		return woken((struct task_struct *)context[0], 1, timed); \
	}

ON_SLEEP(any, 0)
ON_SLEEP(timed, 1)

/* Reclaim that a task does itself, or its control group makes it do: PSI counts it as a stall for memory, also while it runs. */
static inline_always int reclaim(u32 begins)
{
	u32 tid = get_current_pid_tgid();
	u64 key = tid | 1ULL << 32;
	if (begins) {
		struct wait wait = { .flags = WAITS_MEMORY | RECLAIMS, .stack = -1 };
		describe(&wait, get_current_task(), ktime_get_ns());
		begin_wait(key, &wait);
		return 0;
	}
	struct wait *wait = map_lookup(&waits, &key);
	if (wait && wait->since_ns)
		end_wait(key, tid, wait, ktime_get_ns(), 1, 0);
	return 0;
}

SEC("raw_tp/mm_vmscan_direct_reclaim_begin")
int on_reclaim(u64 *context)
{
	return reclaim(1);
}

SEC("raw_tp/mm_vmscan_direct_reclaim_end")
int on_reclaimed(u64 *context)
{
	return reclaim(0);
}

SEC("raw_tp/mm_vmscan_memcg_reclaim_begin")
int on_group_reclaim(u64 *context)
{
	return reclaim(1);
}

SEC("raw_tp/mm_vmscan_memcg_reclaim_end")
int on_group_reclaimed(u64 *context)
{
	return reclaim(0);
}

/* A task asks a user-space file system: if it sleeps next, it waits for that. */
SEC("raw_tp/fuse_request_send")
int on_asked(u64 *context)
{
	u32 tid = get_current_pid_tgid(), one = 1;
	has_asked = 1;
	if (map_update(&asked, &tid, &one, BPF_ANY))
		lose_of_machine(asked);
	return 0;
}

/* A page of a file becomes dirty (folio and mapping before Linux 5.18 are page and mapping). A thread of the kernel works for others: its
 * write is not told to be anybody's. */
static inline_always int dirtied(struct address_space *mapping)
{
	struct task_struct *current = get_current_task();
	/* PF_KTHREAD */
	if (READ(current, flags) >> 21 & 1)
		return 0;
	u64 inode = (u64)READ(mapping, host);
	struct writer *known = map_lookup(&writers, &inode);
	u32 pid = get_current_pid_tgid() >> 32;
	if (!inode || !pid || (known && known->pid == pid))
		return 0;
	struct writer writer = { .pid = pid };
	get_current_comm(writer.task, COMM_BYTES);
	map_update(&writers, &inode, &writer, BPF_ANY);
	return 0;
}

SEC("raw_tp/writeback_dirty_folio")
int on_dirtied(u64 *context)
{
	return dirtied((struct address_space *)context[1]);
}

SEC("raw_tp/writeback_dirty_page")
int on_dirtied_page(u64 *context)
{
	return dirtied((struct address_space *)context[1]);
}

/* SPDX-License-Identifier: MIT OR GPL-2.0
 * The calls of a program by their time: a histogram for each operation, and each call that took longer than a limit, with what it was
 * asleep and queued. `timed_calls` says which calls belong to which operation. Attached for `attach --when` alone.
 * Part of observer.bpf.c. */

enum {
	/* Buckets of a power of two, and powers of two: those of the loader's histogram. Below SUB_BUCKETS a bucket is a nanosecond. */
	SUB_BITS = 7,
	SUB_BUCKETS = 1 << SUB_BITS,
	RANGE_BITS = 40,
	ROWS = RANGE_BITS - SUB_BITS + 2,
	/* Instead of an argument: the descriptor is what the call returns. */
	RETURNED = 0xfffe,
};

/* Flags of a wait: the task sleeps inside of a call that is timed; it is the first sleep of that call. */
enum { IN_CALL = 256, FIRST_IN_CALL = 512 };

struct timed_call {
	/* One more than the place of its operation; 0: it is not timed. */
	u16 operation;
	/* Where struct pt_regs holds the descriptor, NO_ARGUMENT or RETURNED. */
	u16 descriptor;
};

/* A call under way. */
struct timing {
	/* 0: none is under way. */
	u64 entered_ns;
	/* Since when it could run and has no CPU; 0: it runs or sleeps. */
	u64 ready_ns;
	u64 queued_ns;
	u64 slept_ns;
	u32 sleeps;
	u32 number;
};

struct latencies {
	u64 counts[SUB_BUCKETS];
};

struct call_sums {
	u64 calls;
	u64 failed;
	u64 sum_ns;
	/* The least time, as its distance from the largest number there is: 0 then means that there was none. */
	u64 least;
	u64 most_ns;
};

/* A call that took longer than the limit of its operation. */
struct call_event {
	EVENT_HEAD;
	u32 lost;
	u64 entered_ns;
	u64 queued_ns;
	u64 slept_ns;
	u32 sleeps;
	u32 number;
	s64 value;
	/* All 0: none, or not known. */
	struct file_key file;
	char task[COMM_BYTES];
};

/* What did not fit. */
struct tails_lost {
	/* Calls that were not timed: the table of those under way was full. */
	u64 calls;
	/* Slow calls that were not told: the buffer was full. */
	u64 told;
	/* Calls of 32-bit programs, whose numbers are others. */
	u64 compat;
};

/* The loader makes room for them in this mode. */
MAP(BPF_MAP_TYPE_ARRAY, u32, struct timed_call, 1, 0) timed_calls SEC(".maps");
MAP(BPF_MAP_TYPE_HASH, u32, struct timing, 1, 0) timings SEC(".maps");
MAP(BPF_MAP_TYPE_PERCPU_ARRAY, u32, struct latencies, 1, 0) latencies SEC(".maps");
MAP(BPF_MAP_TYPE_PERCPU_ARRAY, u32, struct call_sums, 1, 0) call_sums SEC(".maps");
/* From this time on a call is told, by operation. */
MAP(BPF_MAP_TYPE_ARRAY, u32, u64, 1, 0) tail_limits SEC(".maps");
MAP(BPF_MAP_TYPE_ARRAY, u32, struct tails_lost, 1, 0) tails_losses SEC(".maps");

#define lose_of_tails(what) ({ \
	u32 zero__ = 0; \
	struct tails_lost *lost__ = map_lookup(&tails_losses, &zero__); \
	if (lost__) \
		add(lost__->what, 1); \
})

static inline_always struct timing *timing_of(u32 tid)
{
	struct timing *timing = map_lookup(&timings, &tid);
	return timing && timing->entered_ns ? timing : 0;
}

/* A thread gets a CPU. */
static inline_always void call_runs(u32 tid, u64 now)
{
	struct timing *timing = timing_of(tid);
	if (!timing || !timing->ready_ns)
		return;
	if (now > timing->ready_ns)
		timing->queued_ns += now - timing->ready_ns;
	timing->ready_ns = 0;
}

/* A thread loses its CPU, and could go on. */
static inline_always void call_makes_room(u32 tid, u64 now)
{
	struct timing *timing = timing_of(tid);
	if (timing)
		timing->ready_ns = now;
}

/* A thread falls asleep. Returns the flags of its wait. */
static inline_always u32 call_sleeps(u32 tid)
{
	struct timing *timing = timing_of(tid);
	if (!timing)
		return 0;
	u32 is_first = !timing->sleeps;
	timing->sleeps++;
	return is_first ? IN_CALL | FIRST_IN_CALL : IN_CALL;
}

/* It is woken. */
static inline_always void call_wakes(u32 tid, u64 since, u64 now)
{
	struct timing *timing = timing_of(tid);
	if (!timing || now < since)
		return;
	timing->slept_ns += now - since;
	timing->ready_ns = now;
}

SEC("raw_tp/sys_enter")
int on_call(u64 *context)
{
	u32 tid = get_current_pid_tgid(), number = context[1];
	struct thread *thread = thread_of(tid);
	if (!thread || thread->mode >= HELD)
		return 0;
	struct timed_call *timed = map_lookup(&timed_calls, &number);
	if (!timed || !timed->operation)
		return 0;
	if (thread->mode == COMPAT) {
		lose_of_tails(compat);
		return 0;
	}
	struct timing fresh = { .entered_ns = ktime_get_ns(), .number = number };
	struct timing *timing = map_lookup(&timings, &tid);
	if (timing)
		*timing = fresh;
	else if (map_update(&timings, &tid, &fresh, BPF_ANY))
		lose_of_tails(calls);
	return 0;
}

/* The bucket of a time: `index` of the loader's histogram. A function of its own, so that the verifier follows its branches once. */
__attribute__((noinline)) u32 bucket_of(u64 ns)
{
	if (ns >> RANGE_BITS)
		return (ROWS - 1) << SUB_BITS;
	u32 shift = 0;
	u64 rest = ns >> SUB_BITS;
	if (rest >> 32) { shift += 32; rest >>= 32; }
	if (rest >> 16) { shift += 16; rest >>= 16; }
	if (rest >> 8) { shift += 8; rest >>= 8; }
	if (rest >> 4) { shift += 4; rest >>= 4; }
	if (rest >> 2) { shift += 2; rest >>= 2; }
	if (rest >> 1) { shift += 1; rest >>= 1; }
	return (shift << SUB_BITS) + (u32)(ns >> (shift & 63));
}

/* The key of an open file, which is remembered with its path. */
static inline_always void file_of(struct file_key *key, u64 address)
{
	struct description *of = map_lookup(&descriptions, &address);
	if (!of || of->inode_address != (u64)READ((struct file *)address, f_inode)) {
		renew(address);
		of = map_lookup(&descriptions, &address);
	}
	if (of)
		*key = of->key;
}

static inline_always void tell_call(const struct timing *call, const struct file_key *file, s64 value, u64 now)
{
	u64 task = get_current_pid_tgid();
	u32 cpu = get_smp_processor_id();
	struct call_event *event = ringbuf_reserve(&requests, sizeof(*event), 0);
	if (!event) {
		lose_of_tails(told);
		return;
	}
	event->type = SAMPLE;
	event->misc = 0;
	event->size = sizeof(*event);
	event->identity = IDENTITIES | CALLED;
	event->pid = task >> 32;
	event->tid = task;
	event->time_ns = now;
	event->cpu = cpu;
	event->lost = 0;
	event->entered_ns = call->entered_ns;
	event->queued_ns = call->queued_ns;
	event->slept_ns = call->slept_ns;
	event->sleeps = call->sleeps;
	event->number = call->number;
	event->value = value;
	event->file = *file;
	get_current_comm(event->task, COMM_BYTES);
	u64 waiting = ringbuf_query(&requests, BPF_RB_AVAIL_DATA);
	ringbuf_submit(event, waiting > REQUEST_BYTES / 2 ? BPF_RB_FORCE_WAKEUP : BPF_RB_NO_WAKEUP);
}

/* Adds a call to the sums of its operation. */
static inline_always void count_time(u32 operation, u64 time, s64 value)
{
	u32 bucket = bucket_of(time), row = operation * ROWS + (bucket >> SUB_BITS);
	struct latencies *of = map_lookup(&latencies, &row);
	struct call_sums *sums = map_lookup(&call_sums, &operation);
	if (!of || !sums)
		return;
	add(of->counts[bucket & (SUB_BUCKETS - 1)], 1);
	add(sums->calls, 1);
	add(sums->sum_ns, time);
	if (value < 0 && value >= -4095)
		add(sums->failed, 1);
	if (~time > sums->least)
		sums->least = ~time;
	if (time > sums->most_ns)
		sums->most_ns = time;
}

SEC("raw_tp/sys_exit")
int on_call_end(u64 *context)
{
	u32 tid = get_current_pid_tgid();
	struct timing *timing = timing_of(tid);
	if (!timing)
		return 0;
	u64 now = ktime_get_ns();
	struct timing call = *timing;
	timing->entered_ns = 0;
	struct timed_call *timed = map_lookup(&timed_calls, &call.number);
	if (!timed || !timed->operation || now < call.entered_ns)
		return 0;
	u32 operation = timed->operation - 1;
	u64 time = now - call.entered_ns;
	s64 value = context[1];
	count_time(operation, time, value);
	u64 *limit = map_lookup(&tail_limits, &operation);
	if (!limit || time < *limit)
		return 0;
	struct file_key file = {};
	u32 at = timed->descriptor;
	/* Only a descriptor with which a call succeeded lies inside the table. */
	if (value >= 0 && at != NO_ARGUMENT) {
		u64 descriptor = value;
		if (at != RETURNED)
			probe_read_kernel(&descriptor, sizeof(descriptor), (void *)(context[0] + at));
		u64 address = description_of(descriptor);
		if (address)
			file_of(&file, address);
	}
	tell_call(&call, &file, value, now);
	return 0;
}

/* A thread makes no more calls. */
SEC("raw_tp/sched_process_exit")
int on_caller_end(u64 *context)
{
	u32 tid = READ((struct task_struct *)context[0], pid);
	map_delete(&timings, &tid);
	return 0;
}

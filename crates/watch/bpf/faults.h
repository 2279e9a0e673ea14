/* SPDX-License-Identifier: MIT OR GPL-2.0
 * Page faults of the program's own code, with their addresses, among the recorded calls. They are software events of perf, one when a fault
 * begins and one when it has succeeded. Faults inside of calls are not told: they are the call's time.
 * Attached for a record of every call alone. Part of observer.bpf.c. */

/* No call has this number. */
static const u32 FAULT = ~0u;

SEC("perf_event")
int on_fault(struct bpf_perf_event_data *context)
{
	struct thread *thread = thread_of(get_current_pid_tgid());
	if (thread && thread->mode < HELD)
		thread->fault_ns = ktime_get_ns();
	return 0;
}

SEC("perf_event")
int on_fault_end(struct bpf_perf_event_data *context)
{
	u64 task = get_current_pid_tgid();
	u32 tid = task, zero = 0;
	struct thread *thread = thread_of(tid);
	if (!thread || thread->mode >= HELD || !thread->fault_ns)
		return 0;
	u64 now = ktime_get_ns(), began_ns = thread->fault_ns;
	thread->fault_ns = 0;
	struct machine *here = map_lookup(&machine, &zero);
	if (!here)
		return 0;
	u32 left = here->recording;
	if (left == RECORD_FULL)
		lose(records);
	if (left != RECORD_ALL)
		return 0;
	/* What follows in a record is a call's. */
	struct record *to = ringbuf_reserve(&records, __builtin_offsetof(struct record, arguments[1]), 0);
	if (!to) {
		here->recording = RECORD_FULL;
		lose(records);
		return 0;
	}
	to->entered_ns = began_ns;
	to->returned_ns = now;
	to->pid = task >> 32;
	to->tid = tid;
	to->number = FAULT;
	to->flags = 0;
	to->value = 0;
	to->arguments[0] = context->addr;
	ringbuf_submit(to, BPF_RB_NO_WAKEUP);
	return 0;
}

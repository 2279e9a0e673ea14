/* SPDX-License-Identifier: MIT OR GPL-2.0
 * Counts the system calls of a program in the kernel: by number, by file and by offset. It knows neither numbers nor names of
 * calls: `shapes` says of each number what its arguments mean, and is filled before the program runs.
 * In windows that the loader opens it also records each call with its time, in order.
 * Apart from that it tells of each request of the block layer, whoever made it, when it is queued, goes to the device, and is done.
 * Sums that several threads share are changed by atomic additions; nothing is ever taken out of a sum.
 * Built by `cargo xtask observer`; the bytes are committed beside this file. */
#include "kernel.h"

char declared_license[] SEC("license") = "Dual MIT/GPL";

enum {
	MAX_THREADS = 65536,
	/* Threads that are found without a hash, by the last bits of their numbers. A power of two. */
	NEAR_THREADS = 1024,
	MAX_NUMBERS = 512,
	/* Calls of another ABI (32-bit programs), and numbers beyond the table. */
	OTHER_NUMBER = MAX_NUMBERS - 1,
	/* ENOSYS. */
	NO_CALL = 38,
	/* S_IFMT. */
	FILE_TYPE = 0170000,
	BLOCK_DEVICE = 0060000,
	MAX_ERRORS = 4096,
	MAX_DESCRIPTIONS = 65536,
	MAX_FILES = 65536,
	MAX_PROCESSES = 65536,
	PATH_BYTES = 1024,
	NAME_BYTES = 256,
	MAX_COMPONENTS = 40,
	PAGE = 4096,
	MAP_ANONYMOUS = 0x20,
	MAX_MARKS_OF_A_CALL = 96,
	SIZE_CLASSES = 32,
	ARGUMENTS = 6,
	/* Bytes of recorded calls that wait for the loader. A power of two; the loader makes it larger for a record of all calls. */
	RECORD_BYTES = 1 << 20,
	/* Bytes of events of block requests that wait for the loader: half a second of 50,000 requests a second. A power of two. */
	REQUEST_BYTES = 8 << 20,
	COMM_BYTES = 16,
	/* Requests of rings under way that are followed, and ring operations that are told apart. */
	MAX_RING_REQUESTS = 65536,
	RING_OPERATIONS = 64,
	MAX_RING_FILES = 4096,
	/* 64 marks each: the last stands for blocks of 4096 bytes from 2^45 on. */
	MARK_WORDS = 40,
	REGISTERS = 9,
	/* Addresses of a stack, kernel or user. A power of two less one: what perf takes by default. */
	MAX_FRAMES = 127,
	/* A user stack is copied in pieces, in words of 8 bytes: the first piece that cannot be read ends it. */
	STACK_REGISTERS = 3,
	PIECE_WORDS = 64,
	STACK_PIECES = 32,
};

/* What a call does, beyond its number. Mirrors `Shape` of the loader. */
enum kind { OTHER, MOVE, RELAY, SEEK, SYNC, OPEN, MAP_FILE, CONTROL, ADVISE, LOOK_UP };
enum place { AT_POSITION, AT_ARGUMENT, AT_ARGUMENT_OR_POSITION, AT_POINTER };
enum direction { READS, WRITES };

/* Values of `machine.recording`. */
static const u32 RECORD_ALL = ~0u, RECORD_FULL = ~0u - 1;

/* Arguments are told by where struct pt_regs of this architecture holds them, in bytes. */
enum { NO_ARGUMENT = 0xffff };

struct end {
	u16 descriptor;
	u16 offset;
	u8 place;
	u8 direction;
};

struct shape {
	/* Of a call that looks a path up, in the first one: where the directory is and, as its offset, the path; or NO_ARGUMENT. */
	struct end ends[2];
	/* The bytes asked for; NO_ARGUMENT: what is returned stands for them. */
	u16 asked;
	/* Protection and flags of mmap. */
	u16 protection;
	u16 flags;
	u8 kind;
	u8 padding;
};

/* What differs by architecture. */
struct machine {
	u32 o_direct;
	/* Bit in thread_info.flags of 32-bit programs. */
	u32 compat_bit;
	/* Where struct pt_regs holds the number of the call, and from where on most arguments: they are read at once. */
	u32 number;
	u32 registers;
	/* Number of rt_sigreturn(2): it leaves none in the registers. */
	u32 sigreturn;
	/* How many more calls are recorded, or RECORD_ALL. The loader sets it; a buffer that is full ends the window, so that no record
	 * is missing between two others. Of a record of all calls (RECORD_FULL then) those that are missing are counted. */
	u32 recording;
	/* Where struct pt_regs holds each argument. */
	u32 arguments[ARGUMENTS];
};

struct count {
	u64 calls;
	u64 failed;
	u64 bytes;
};

/* Sums only: userspace and `flush` add field by field. In a run `direct` and `synchronous` are not counted: there they are all calls or none. */
struct access {
	u64 calls;
	u64 bytes;
	u64 direct;
	u64 synchronous;
	/* Calls that moved bytes at a known offset; the three below are parts of it. */
	u64 placed;
	u64 sequential_known;
	u64 sequential;
	u64 unaligned;
	u64 after_seek;
	/* Calls that covered a mark, and those that covered one that had been covered before. */
	u64 marked;
	u64 repeated;
	/* Bytes that the marks stand for, by coverings and by marks. */
	u64 mark_bytes;
	u64 fresh_mark_bytes;
};

enum { ACCESS_WORDS = sizeof(struct access) / sizeof(u64) };

struct sums {
	struct access access[2];
	u64 sizes[2][SIZE_CLASSES];
	u64 opens;
	u64 syncs;
	u64 maps;
	u64 code_maps;
};

struct file_key {
	u64 inode;
	u32 device;
	/* File type bits of i_mode; in the upper half, what tells a file from one before it that had the same inode. */
	u32 type;
};

/* What was done to a file, and which of its marks were covered. */
struct file_sums {
	struct sums sums;
	u64 marks[2][MARK_WORDS];
};

/* An open file description. */
struct description {
	u64 inode_address;
	struct file_key key;
	/* Where the last transfer of each direction ended, as far as it is known. */
	u64 end[2];
	u8 has_end[2];
	/* Nothing was moved since its position was set. */
	u8 sought;
	u8 padding[5];
};

/* Transfers of one thread through one description, one way. They are added up here, where nobody else writes, and go to the
 * sums of the file when the thread turns to another description: most programs that call often stay with one. */
struct run {
	u64 address;
	u64 inode_address;
	struct file_key key;
	u64 end;
	u8 has_end;
	u8 sought;
	u8 has_offsets;
	u8 direct;
	u8 synchronous;
	u8 appends;
	u8 padding[2];
	u32 size;
	/* A word of the file's marks, as it was. No mark is ever taken back. */
	u32 mark_word;
	u64 marks;
	u64 size_calls;
	/* What was asked for last; its class is `size`. */
	u64 asked;
	struct access access;
};

/* COMPAT: runs a 32-bit program. HELD: not yet the program that is observed, but what becomes it by exec. ENDED: it makes no calls any
 * more, but may still sleep on its way out; its place may be given away. */
enum { NATIVE, COMPAT, HELD, ENDED };

struct thread {
	/* 0: the place is free. */
	u32 tid;
	u16 mode;
	/* The next call that returns was made by the parent. */
	u16 fresh;
	/* When the call under way began, where a window was open then; 0: it is not known. */
	u64 entered_ns;
	/* When the page fault under way began; 0: none is, or it is not known. */
	u64 fault_ns;
	struct run runs[2];
};

/* A call that returned in a window. */
struct record {
	u64 entered_ns;
	u64 returned_ns;
	u32 pid;
	u32 tid;
	u32 number;
	/* Flags of the open file. */
	u32 flags;
	s64 value;
	u64 arguments[ARGUMENTS];
	/* The file that the call worked on; all 0: none. */
	struct file_key file;
	/* Its position after the call; of a call that looked a path up and opened nothing: which name that was (`names.h`). */
	u64 position;
};

struct path_text {
	u32 bytes;
	u32 whole;
	/* All of what the key has half of. */
	u32 generation;
	u32 unused;
	/* In bytes, when it was met. */
	u64 size;
	/* Components from the file up to the root, each with a final 0. */
	union {
		char text[PATH_BYTES + NAME_BYTES];
		u64 words[(PATH_BYTES + NAME_BYTES) / 8];
	};
};

/* Where the walk from a file up to the root is. */
struct walk {
	struct dentry *dentry;
	struct mount *mount;
};

/* What did not fit. */
struct lost {
	u64 threads;
	u64 descriptions;
	u64 files;
	u64 requests;
	u64 processes;
	u64 ring_requests;
	u64 records;
};

/* The same, of the whole machine. */
struct machine_lost {
	u64 waits;
	u64 events;
	u64 asked;
};

/* PERF_RECORD_SAMPLE of include/uapi/linux/perf_event.h. */
enum { SAMPLE = 9 };
/* Identities of events. perf counts its own up from 1. */
enum { INSERTED = 1, ISSUED, DONE, MERGED, RING_BUSY, RING_IDLE, SWITCHED, WAITED, CALLED };
static const u64 IDENTITIES = 0xffffffff00000000ULL;

/* How perf lays out a sample that begins with identity, task, time and CPU, so that one reader puts all kinds in order. */
#define EVENT_HEAD u32 type; u16 misc; u16 size; u64 identity; u32 pid; u32 tid; u64 time_ns; u32 cpu

/* What a request reads for: read-ahead, and the file system's own data (inodes, directories, maps of blocks). */
enum { AHEAD = 1, METADATA = 2 };

/* Something happened to a request of the block layer. */
struct request_event {
	EVENT_HEAD;
	/* Events before this one that found the buffer full. */
	u32 lost;
	/* Where the kernel holds the request: its identity until it is done. */
	u64 address;
	u32 major;
	u32 minor;
	u64 sector;
	/* The length; of what is done: that part. */
	u32 bytes;
	u8 operation;
	/* AHEAD, METADATA. */
	u8 purpose;
	u8 kernel_thread;
	/* Written by a thread of the kernel for the task that is named. */
	u8 charged;
	char task[COMM_BYTES];
};

/* A CPU went from one thread to another: LEFT says whether the first one is of the program, PREEMPTED whether it could have gone on, and
 * REGISTERS_TOLD whether its registers follow its stacks. */
enum { LEFT = 1, PREEMPTED = 2, REGISTERS_TOLD = 4 };
struct switch_event {
	EVENT_HEAD;
	/* Switches of this CPU before this one that found the buffer full. */
	u32 lost;
	/* The second thread, if that one is of the program; else 0. */
	u32 next_pid;
	u32 next_tid;
	u32 flags;
	/* How many of the addresses are in the kernel; the user's follow them. */
	u32 kernel_frames;
	u32 user_frames;
	/* Where the flags say so, place in the code, stack pointer and frame pointer follow, and so many words of the user stack. */
	u32 stack_words;
	u64 frames[2 * MAX_FRAMES + 1 + STACK_REGISTERS + STACK_PIECES * PIECE_WORDS];
};

/* What a CPU works on while it tells of a switch, and what that took. */
struct switching {
	u64 spent_ns;
	u64 switches;
	struct switch_event event;
};

/* What a request of a ring waits for: an event (a socket, a timer, a signal), a file, or what its descriptor is. */
enum { RING_EVENT, RING_FILE, RING_BY_DESCRIPTOR };

/* A request of a ring that works on a file. */
struct ring_request {
	u64 submitted_ns;
	u32 descriptor;
	/* The descriptor is an index of files that are registered with the ring. */
	u32 registered;
};

struct ring_count {
	u64 requests;
	/* Of those on files: that completed, and their time. */
	u64 done;
	u64 time_ns;
	/* Their results where they are no errors: bytes, of those that move bytes. */
	u64 bytes;
	u64 failed;
};

struct ring_file {
	u64 ring;
	u64 index;
};

struct error_key {
	u32 number;
	u32 error;
};

/* What a process did itself, without its children. Of devices: the kernel's counters of its threads that ended, less those of before
 * its first exec where that was awaited. */
struct process {
	/* Of files with offsets, by direction; what a thread has not yet added stands in its runs. */
	struct {
		u64 calls;
		u64 bytes;
	} moved[2];
	u64 device_read_bytes;
	u64 device_written_bytes;
	/* Those that succeeded, of threads that live as well. */
	u64 syncs;
	/* Threads that ended. */
	u64 ended;
};

/* One more than is read: the verifier does not see that offsets are multiples of a word. */
struct registers {
	u64 words[REGISTERS + 1];
};

MAP(BPF_MAP_TYPE_ARRAY, u32, struct thread, NEAR_THREADS, 0) near_threads SEC(".maps");
MAP(BPF_MAP_TYPE_HASH, u32, struct thread, MAX_THREADS, BPF_F_NO_PREALLOC) far_threads SEC(".maps");
MAP(BPF_MAP_TYPE_ARRAY, u32, struct shape, MAX_NUMBERS, 0) shapes SEC(".maps");
MAP(BPF_MAP_TYPE_PERCPU_ARRAY, u32, struct count, MAX_NUMBERS, 0) counts SEC(".maps");
MAP(BPF_MAP_TYPE_HASH, struct error_key, u64, MAX_ERRORS, BPF_F_NO_PREALLOC) errors SEC(".maps");
MAP(BPF_MAP_TYPE_HASH, u64, struct description, MAX_DESCRIPTIONS, BPF_F_NO_PREALLOC) descriptions SEC(".maps");
MAP(BPF_MAP_TYPE_HASH, struct file_key, struct file_sums, MAX_FILES, BPF_F_NO_PREALLOC) files SEC(".maps");
MAP(BPF_MAP_TYPE_HASH, struct file_key, struct path_text, MAX_FILES, BPF_F_NO_PREALLOC) paths SEC(".maps");
MAP(BPF_MAP_TYPE_HASH, u32, struct process, MAX_PROCESSES, BPF_F_NO_PREALLOC) processes SEC(".maps");
MAP(BPF_MAP_TYPE_PERCPU_ARRAY, u32, struct path_text, 1, 0) scratch SEC(".maps");
MAP(BPF_MAP_TYPE_PERCPU_ARRAY, u32, struct walk, 1, 0) walks SEC(".maps");
MAP(BPF_MAP_TYPE_PERCPU_ARRAY, u32, struct registers, 1, 0) registers SEC(".maps");
MAP(BPF_MAP_TYPE_PERCPU_ARRAY, u32, struct switching, 1, 0) switching SEC(".maps");
MAP(BPF_MAP_TYPE_ARRAY, u32, struct lost, 1, 0) losses SEC(".maps");
MAP(BPF_MAP_TYPE_ARRAY, u32, struct machine, 1, 0) machine SEC(".maps");

MAP(BPF_MAP_TYPE_ARRAY, u32, u32, RING_OPERATIONS, 0) ring_kinds SEC(".maps");
MAP(BPF_MAP_TYPE_PERCPU_ARRAY, u32, struct ring_count, RING_OPERATIONS, 0) ring_counts SEC(".maps");
MAP(BPF_MAP_TYPE_HASH, u64, struct ring_request, MAX_RING_REQUESTS, BPF_F_NO_PREALLOC) ring_requests SEC(".maps");
/* Registered files that have turned out to be sockets, pipes or other events. */
MAP(BPF_MAP_TYPE_HASH, struct ring_file, u32, MAX_RING_FILES, BPF_F_NO_PREALLOC) ring_events SEC(".maps");
MAP(BPF_MAP_TYPE_ARRAY, u32, s32, 1, 0) ring_in_flight SEC(".maps");

RING(RECORD_BYTES) records SEC(".maps");
RING(REQUEST_BYTES) requests SEC(".maps");

/* Zeroes to make new entries from; larger than the stack. */
static const struct file_sums no_sums = {};
static const struct thread no_thread = {};
static const struct process no_process = {};

/* Whether there ever was a thread in `far_threads`. */
u32 has_far_threads = 0;

/* Where struct pt_regs of this architecture holds the place in the code, the stack pointer and the frame pointer, in bytes, if user stacks are
 * to be copied. Set by the loader where the kernel tells where the registers are (5.15 and later). */
const volatile u32 instruction_at = 0, pointer_at = 0, frame_at = 0;

/* Whether the verifier knows the type of the current task (5.11 and later), so that its fields are plain loads. Set by the loader. */
const volatile u32 typed_task = 0;

/* Whether every task is observed (`machine.h`). Set by the loader. */
const volatile u32 whole_machine = 0;

#define add(sum, value) __sync_fetch_and_add(&(sum), (value))

#define lose(what) ({ \
	u32 zero__ = 0; \
	struct lost *lost__ = map_lookup(&losses, &zero__); \
	if (lost__) \
		add(lost__->what, 1); \
})

/* A call that has returned. */
struct call {
	u64 regs;
	struct registers *registers;
	struct machine *here;
};

/* Here the compiler must have the value of this very variable. One that is compared with a bound is the one that is used then:
 * the verifier knows nothing of a copy that was made before. */
#define OPAQUE(variable) asm volatile("" : "+r"(variable))

static inline_always u64 argument(const struct call *call, u32 at)
{
	u32 word = (at - call->here->registers) / sizeof(u64);
	if (word < REGISTERS)
		return call->registers->words[word];
	u64 value = 0;
	probe_read_kernel(&value, sizeof(value), (void *)(call->regs + at));
	return value;
}

static inline_always struct thread *thread_of(u32 tid)
{
	u32 place = tid & (NEAR_THREADS - 1);
	struct thread *thread = map_lookup(&near_threads, &place);
	if (!thread || thread->tid == tid)
		return thread;
	return has_far_threads ? map_lookup(&far_threads, &tid) : 0;
}

/* A place for a thread that is born. Two births at once do not meet in one place: their numbers would have to be equal in the last
 * bits, and numbers are given in a row. */
static inline_always struct thread *enrol(u32 tid)
{
	u32 place = tid & (NEAR_THREADS - 1);
	struct thread *thread = map_lookup(&near_threads, &place);
	if (thread && thread->tid && thread->tid != tid && thread->mode != ENDED) {
		has_far_threads = 1;
		if (map_update(&far_threads, &tid, &no_thread, BPF_ANY)) {
			lose(threads);
			return 0;
		}
		thread = map_lookup(&far_threads, &tid);
	}
	if (thread) {
		__builtin_memset(thread, 0, sizeof(*thread));
		thread->tid = tid;
	}
	return thread;
}

/* The open file description behind a descriptor of the current task, as an address; 0: there is none. Only for descriptors with
 * which a call succeeded: those lie inside the table. */
static inline_always u64 description_at(u32 descriptor, u32 typed)
{
	struct file **slots;
	if (typed) {
		slots = get_current_task_btf()->files->fdt->fd;
	} else {
		struct files_struct *table = READ(get_current_task(), files);
		struct fdtable *fdt = READ(table, fdt);
		slots = READ(fdt, fd);
	}
	u64 file = 0;
	probe_read_kernel(&file, sizeof(file), &slots[descriptor]);
	return file;
}

/* A function of its own: each time that the verifier comes to a load of a typed pointer, it searches all types of the kernel for half a
 * millisecond. */
__attribute__((noinline)) u64 description_of(u32 descriptor)
{
	return description_at(descriptor, typed_task);
}

/* The sums of a file of its own. */
static inline_always struct file_sums *own_sums_of(const struct file_key *key)
{
	struct file_sums *sums = map_lookup(&files, key);
	if (sums)
		return sums;
	map_update(&files, key, &no_sums, BPF_NOEXIST);
	return map_lookup(&files, key);
}

/* The sums of a file; when the table is full, those of all further files of its type, which the loader has made. */
static inline_always struct file_sums *sums_of(const struct file_key *key)
{
	struct file_sums *sums = own_sums_of(key);
	if (sums)
		return sums;
	lose(files);
	struct file_key others = { .type = key->type & FILE_TYPE };
	return map_lookup(&files, &others);
}

static inline_always struct process *process_of(u32 tgid)
{
	struct process *process = map_lookup(&processes, &tgid);
	if (process)
		return process;
	map_update(&processes, &tgid, &no_process, BPF_NOEXIST);
	process = map_lookup(&processes, &tgid);
	if (!process)
		lose(processes);
	return process;
}

static inline_always int has_offsets(u32 type)
{
	return type == 0100000 || type == 0060000 || type == 0040000;
}

/* Adds a run to the sums of its file, and begins it anew. Leaves behind where it ended.
 * This function and those below are neither inlined nor static, so that the verifier follows each once. */
__attribute__((noinline)) int flush(u32 tid, u32 direction)
{
	struct thread *thread = thread_of(tid);
	if (!thread)
		return 0;
	direction &= 1;
	struct run *run = &thread->runs[direction];
	u64 address = run->address;
	if (!address)
		return 0;
	struct file_key key = run->key;
	struct file_sums *of = sums_of(&key);
	if (of) {
		u64 *to = (u64 *)&of->sums.access[direction];
		const u64 *from = (const u64 *)&run->access;
		for (u32 i = 0; i < ACCESS_WORDS; i++)
			if (from[i])
				add(to[i], from[i]);
		if (run->direct)
			add(of->sums.access[direction].direct, run->access.calls);
		if (run->synchronous)
			add(of->sums.access[direction].synchronous, run->access.calls);
		add(of->sums.sizes[direction][run->size & (SIZE_CLASSES - 1)], run->size_calls);
	}
	if (has_offsets(key.type & FILE_TYPE)) {
		struct process *process = process_of(get_current_pid_tgid() >> 32);
		if (process) {
			add(process->moved[direction].calls, run->access.calls);
			add(process->moved[direction].bytes, run->access.bytes);
		}
	}
	struct description *description = map_lookup(&descriptions, &address);
	if (description && description->inode_address == run->inode_address) {
		description->end[direction] = run->end;
		description->has_end[direction] = run->has_end;
		description->sought = run->sought;
	}
	__builtin_memset(run, 0, sizeof(*run));
	return 0;
}

/* Adds the kernel's counters of a thread to its process once (sign 1), or takes them off (sign -1). */
static inline_always void settle(struct task_struct *task, u64 sign)
{
	struct process *process = process_of(READ(task, tgid));
	if (!process)
		return;
	if (EXISTS(struct task_io_accounting, read_bytes)) {
		add(process->device_read_bytes, sign * READ(task, ioac.read_bytes));
		add(process->device_written_bytes, sign * READ(task, ioac.write_bytes));
	}
}

/* A thread makes no more calls. One that has not its own place is forgotten at once. */
__attribute__((noinline)) int leave(u32 tid)
{
	flush(tid, READS);
	flush(tid, WRITES);
	u32 place = tid & (NEAR_THREADS - 1);
	struct thread *thread = map_lookup(&near_threads, &place);
	if (thread && thread->tid == tid)
		thread->mode = ENDED;
	else
		map_delete(&far_threads, &tid);
	return 0;
}

/* Writes a component down. Returns whether there was room for it. */
static inline_always u32 add_name(struct path_text *path, struct dentry *dentry)
{
	u32 at = path->bytes;
	if (at > PATH_BYTES)
		return 0;
	long bytes = probe_read_kernel_str(&path->text[at], NAME_BYTES, READ(dentry, d_name.name));
	if (bytes <= 0 || bytes > NAME_BYTES)
		return 0;
	path->bytes = at + bytes;
	return 1;
}

/* One step from a file up to the root: over a mount point, or to the parent, whose child's name is written down. Returns whether
 * there is more. */
__attribute__((noinline)) u32 climb(void)
{
	u32 zero = 0;
	struct path_text *path = map_lookup(&scratch, &zero);
	struct walk *walk = map_lookup(&walks, &zero);
	if (!path || !walk)
		return 0;
	struct dentry *dentry = walk->dentry, *parent = READ(dentry, d_parent);
	struct mount *mount = walk->mount;
	if (dentry == READ(mount, mnt.mnt_root) || dentry == parent) {
		struct mount *above = READ(mount, mnt_parent);
		if (above == mount || dentry != READ(mount, mnt.mnt_root)) {
			path->whole = above == mount;
			/* The file is below no directory: memory that has a name (`memfd:NAME`). */
			if (dentry != READ(mount, mnt.mnt_root) && !path->bytes)
				add_name(path, dentry);
			return 0;
		}
		walk->dentry = READ(mount, mnt_mountpoint);
		walk->mount = above;
		return 1;
	}
	if (!add_name(path, dentry))
		return 0;
	walk->dentry = parent;
	return 1;
}

/* Writes the path of a file down, component by component from its end, over the mount points up to the root. */
__attribute__((noinline)) int remember_path(u64 address)
{
	struct description *of = map_lookup(&descriptions, &address);
	u32 zero = 0;
	struct path_text *path = map_lookup(&scratch, &zero);
	struct walk *walk = map_lookup(&walks, &zero);
	if (!of || !path || !walk)
		return 0;
	struct file_key key = of->key;
	if (map_lookup(&paths, &key))
		return 0;
	struct file *file = (struct file *)address;
	struct vfsmount *mounted = READ(file, f_path.mnt);
	walk->dentry = READ(file, f_path.dentry);
	walk->mount = (void *)mounted - __builtin_preserve_field_info(((struct mount *)0)->mnt, 0);
	path->bytes = 0;
	path->whole = 0;
	struct inode *inode = READ(file, f_inode);
	path->generation = READ(inode, i_generation);
	path->size = READ(inode, i_size);
	for (u32 i = 0; i < MAX_COMPONENTS; i++)
		if (!climb())
			break;
	map_update(&paths, &key, path, BPF_NOEXIST);
	return 0;
}

/* Begins a description anew: the kernel uses the memory of closed ones again. */
__attribute__((noinline)) int renew(u64 address)
{
	struct inode *inode = READ((struct file *)address, f_inode);
	struct super_block *super = READ(inode, i_sb);
	struct description fresh = {};
	fresh.inode_address = (u64)inode;
	fresh.key.inode = READ(inode, i_ino);
	fresh.key.device = READ(super, s_dev);
	fresh.key.type = (READ(inode, i_mode) & FILE_TYPE) | READ(inode, i_generation) << 16;
	if (map_update(&descriptions, &address, &fresh, BPF_ANY)) {
		lose(descriptions);
		return 0;
	}
	remember_path(address);
	return 0;
}

/* Ceiling of the binary logarithm, as `size_class` of the loader. A function of its own, so that the verifier follows its
 * branches once. */
__attribute__((noinline)) u32 size_class(u64 bytes)
{
	u32 class = 0;
	u64 rest = bytes ? bytes - 1 : 0;
	if (rest >> 32)
		return SIZE_CLASSES - 1;
	if (rest >> 16) { class += 16; rest >>= 16; }
	if (rest >> 8) { class += 8; rest >>= 8; }
	if (rest >> 4) { class += 4; rest >>= 4; }
	if (rest >> 2) { class += 2; rest >>= 2; }
	if (rest >> 1) { class += 1; rest >>= 1; }
	class += rest;
	return class < SIZE_CLASSES ? class : SIZE_CLASSES - 1;
}

static inline_always u64 mix(u64 value)
{
	/* The finalizer of MurmurHash3 (Appleby, public domain). */
	value ^= value >> 33;
	value *= 0xff51afd7ed558ccdULL;
	value ^= value >> 33;
	value *= 0xc4ceb9fe1a85ec53ULL;
	return value ^ value >> 33;
}

/* Which bytes were moved before? A file has marks: single bytes, one in each group of blocks of 4096 bytes, drawn by a hash of the
 * group. A group is one block in the first 128 blocks, and 2^k blocks in [64 * 2^k, 128 * 2^k): 64 marks in each octave, each of
 * which stands for a known number of bytes. Whoever covers a mark says whether it was covered before. */
struct group {
	u32 shift;
	u64 number;
};

static inline_always struct group group_of(u64 block)
{
	u32 class = size_class((block >> 6) + 1);
	struct group group = { .shift = class ? class - 1 : 0 };
	group.number = block >> (group.shift & 63);
	return group;
}

/* The byte of a file that is the mark of this group. */
static inline_always u64 mark_of(const struct group *group)
{
	u32 shift = group->shift & 63;
	u64 hash = mix(group->number << 6 | shift);
	u64 block = (group->number << shift) + (hash & ((1ULL << shift) - 1));
	return block * PAGE + (hash >> 40) % PAGE;
}

/* A mark was covered by a transfer of this thread. Returns 1: for the first time; 3: not for the first time. */
static inline_always u32 covered(struct run *run, u32 direction, const struct group *group)
{
	/* The numbers of a group lie in [64, 128), but for the first 64. */
	u32 word = group->number < 64 ? 0 : group->shift + 1;
	OPAQUE(word);
	u64 bit = 1ULL << (group->number & 63);
	u64 stands_for = (u64)PAGE << (group->shift & 63);
	if (word >= MARK_WORDS)
		return 0;
	run->access.mark_bytes += stands_for;
	if (run->mark_word == word && run->marks & bit)
		return 3;
	struct file_key key = run->key;
	/* Files that share their sums have no marks. */
	struct file_sums *of = own_sums_of(&key);
	if (!of)
		return 0;
	/* Two threads that cover two marks of a word at once may lose one of them: it is then called new once more. */
	u64 *marks = &of->marks[direction & 1][word];
	u32 before = *marks & bit ? 3 : 1;
	*marks |= bit;
	run->mark_word = word;
	run->marks = *marks;
	if (before == 1)
		run->access.fresh_mark_bytes += stands_for;
	return before;
}

/* The mark of the group of this block, if the bytes cover it. */
__attribute__((noinline)) u32 cover_one(u32 tid, u32 direction, u64 block, u64 offset, u64 end)
{
	struct thread *thread = thread_of(tid);
	if (!thread)
		return 0;
	struct group group = group_of(block);
	u64 at = mark_of(&group);
	if (at < offset || at >= end)
		return 0;
	return covered(&thread->runs[direction & 1], direction, &group);
}

/* The first block behind the group of this one. */
__attribute__((noinline)) u64 next_group(u64 block)
{
	struct group group = group_of(block);
	return (group.number + 1) << (group.shift & 63);
}

/* The marks in the bytes of a transfer that reaches into several groups. */
__attribute__((noinline)) int cover(u32 tid, u32 direction, u64 offset, u64 end)
{
	u64 block = offset / PAGE;
	u32 found = 0;
	for (u32 i = 0; i < MAX_MARKS_OF_A_CALL && block * PAGE < end; i++) {
		found |= cover_one(tid, direction, block, offset, end);
		block = next_group(block);
	}
	struct thread *thread = thread_of(tid);
	if (!thread)
		return 0;
	struct run *run = &thread->runs[direction & 1];
	run->access.marked += found & 1;
	run->access.repeated += found >> 1 & 1;
	return 0;
}

/* The run of this thread for this description turns to another one. */
__attribute__((noinline)) int turn(u32 tid, u32 direction, u64 address, u64 inode_address)
{
	flush(tid, direction);
	struct description *of = map_lookup(&descriptions, &address);
	if (!of || of->inode_address != inode_address) {
		renew(address);
		of = map_lookup(&descriptions, &address);
	}
	struct thread *thread = thread_of(tid);
	u32 zero = 0;
	struct machine *here = map_lookup(&machine, &zero);
	if (!thread || !of || !here)
		return 0;
	direction &= 1;
	struct run *run = &thread->runs[direction];
	u32 flags = READ((struct file *)address, f_flags);
	run->address = address;
	run->inode_address = inode_address;
	run->key = of->key;
	run->end = of->end[direction];
	run->has_end = of->has_end[direction];
	run->sought = of->sought;
	run->has_offsets = has_offsets(of->key.type & FILE_TYPE);
	run->direct = run->has_offsets && flags & here->o_direct;
	/* O_SYNC contains this bit of O_DSYNC. */
	run->synchronous = run->has_offsets && flags & 010000;
	run->appends = direction == WRITES && flags & 02000;
	return 1;
}

/* Another size of request than before. */
__attribute__((noinline)) int resize(u32 tid, u32 direction, u64 asked)
{
	struct thread *thread = thread_of(tid);
	u32 class = size_class(asked);
	if (!thread)
		return 0;
	direction &= 1;
	struct run *run = &thread->runs[direction];
	run->asked = asked;
	if (run->size == class)
		return 0;
	if (run->size_calls) {
		struct file_key key = run->key;
		struct file_sums *of = sums_of(&key);
		if (of)
			add(of->sums.sizes[direction][run->size & (SIZE_CLASSES - 1)], run->size_calls);
	}
	run->size = class;
	run->size_calls = 0;
	return 0;
}

/* Bytes were moved through a description. */
static inline_always void moved(const struct call *call, struct thread *thread, u32 tid, const struct shape *shape,
	const struct end *end, u64 address, u64 bytes)
{
	u32 direction = end->direction & 1;
	if (!address)
		return;
	struct file *file = (struct file *)address;
	u64 inode_address = (u64)READ(file, f_inode);
	struct run *run = &thread->runs[direction];
	if ((run->address != address || run->inode_address != inode_address) &&
		!turn(tid, direction, address, inode_address))
		return;
	u64 asked = shape->asked == NO_ARGUMENT ? bytes : argument(call, shape->asked);
	if (run->asked != asked)
		resize(tid, direction, asked);
	run->size_calls++;
	run->access.calls++;
	run->access.bytes += bytes;
	if (!bytes || !run->has_offsets)
		return;
	u64 given = argument(call, end->offset);
	int by_position = end->place == AT_POSITION || (end->place == AT_ARGUMENT_OR_POSITION && given == ~0ULL) ||
		(end->place == AT_POINTER && !given);
	if (!by_position && end->place == AT_POINTER)
		return;
	/* The position has moved on by what was moved. */
	u64 offset = by_position || run->appends ? (u64)READ(file, f_pos) - bytes : given;
	run->access.placed++;
	run->access.sequential_known += run->has_end | run->appends;
	run->access.sequential += run->appends || (run->has_end && run->end == offset);
	run->access.unaligned += ((offset | asked) & (PAGE - 1)) != 0;
	/* A seek to where the last transfer ended, or before the first one, changes nothing: libraries ask for the position so. Nor does one before
	 * a call that names its offset: databases ask for the size so. */
	run->access.after_seek += by_position && run->sought && run->has_end && run->end != offset;
	run->end = offset + bytes;
	run->has_end = 1;
	run->sought = 0;
	struct group group = group_of(offset / PAGE);
	if (group.number == (offset + bytes - 1) / PAGE >> (group.shift & 63)) {
		u64 at = mark_of(&group);
		if (at >= offset && at < offset + bytes) {
			u32 found = covered(run, direction, &group);
			run->access.marked += found & 1;
			run->access.repeated += found >> 1 & 1;
		}
	} else {
		cover(tid, direction, offset, offset + bytes);
	}
}

/* Bytes were moved from one description to another: one of the two ends. Few programs do that often, so it may look up again what
 * the caller knows: the verifier then follows it once, and what is called often only once more. */
__attribute__((noinline)) int relayed(u64 regs, u32 tid, u32 number, u32 end, u64 bytes)
{
	u32 zero = 0;
	struct machine *here = map_lookup(&machine, &zero);
	struct registers *held = map_lookup(&registers, &zero);
	struct shape *shape = map_lookup(&shapes, &number);
	struct thread *thread = thread_of(tid);
	if (!here || !held || !shape || !thread)
		return 0;
	struct call call = { .regs = regs, .registers = held, .here = here };
	u64 address = description_of(argument(&call, shape->ends[end & 1].descriptor));
	moved(&call, thread, tid, shape, &shape->ends[end & 1], address, bytes);
	return 0;
}

/* A call that succeeded, and moved nothing, on an open file. */
__attribute__((noinline)) int touched(u32 tid, u32 descriptor, u32 kind, u32 code)
{
	u64 address = description_of(descriptor);
	struct thread *thread = thread_of(tid);
	if (!address || !thread)
		return 0;
	/* A closed description may have had this address, and control may change its flags. */
	if (kind == OPEN || kind == CONTROL) {
		if (thread->runs[READS].address == address)
			flush(tid, READS);
		if (thread->runs[WRITES].address == address)
			flush(tid, WRITES);
		if (kind == CONTROL)
			return 0;
	}
	struct description *of = map_lookup(&descriptions, &address);
	if (!of || kind == OPEN || of->inode_address != (u64)READ((struct file *)address, f_inode)) {
		renew(address);
		of = map_lookup(&descriptions, &address);
		if (!of)
			return 0;
	}
	if (kind == SEEK) {
		of->sought = 1;
		if (thread->runs[READS].address == address)
			thread->runs[READS].sought = 1;
		if (thread->runs[WRITES].address == address)
			thread->runs[WRITES].sought = 1;
		return 0;
	}
	struct file_key key = of->key;
	struct file_sums *sums = sums_of(&key);
	if (!sums)
		return 0;
	if (kind == OPEN) {
		add(sums->sums.opens, 1);
	} else if (kind == SYNC) {
		add(sums->sums.syncs, 1);
		struct process *process = process_of(get_current_pid_tgid() >> 32);
		if (process)
			add(process->syncs, 1);
	} else if (kind == MAP_FILE) {
		add(sums->sums.maps, 1);
		add(sums->sums.code_maps, code);
	}
	return 0;
}

__attribute__((noinline)) int failed(u32 number, u32 error)
{
	struct error_key key = { .number = number, .error = error };
	u64 *sum = map_lookup(&errors, &key), one = 1;
	if (!sum && map_update(&errors, &key, &one, BPF_NOEXIST))
		sum = map_lookup(&errors, &key);
	if (sum)
		add(*sum, 1);
	return 0;
}

#include "names.h"

/* Writes a call into the buffer. What it did to its file is counted before: the file is known. */
__attribute__((noinline)) int record(u64 regs, u32 number, s64 value, u32 tid, u64 returned_ns)
{
	u32 zero = 0;
	struct machine *here = map_lookup(&machine, &zero);
	struct registers *held = map_lookup(&registers, &zero);
	struct shape *shape = map_lookup(&shapes, &number);
	struct thread *thread = thread_of(tid);
	if (!here || !held || !shape || !thread)
		return 0;
	u64 entered_ns = thread->entered_ns;
	thread->entered_ns = 0;
	u32 left = here->recording;
	if (left == RECORD_FULL)
		lose(records);
	if (!left || left == RECORD_FULL)
		return 0;
	u32 kind = shape->kind;
	int looked = kind == LOOK_UP ? value >= 0 || value == -NO_SUCH_NAME : kind == OPEN && value == -NO_SUCH_NAME;
	u64 name = looked ? name_looked_up(regs, number) : 0;
	struct record *to = ringbuf_reserve(&records, sizeof(*to), 0);
	/* One branch for all: verifiers before Linux 6.2 do not know that memory that was reserved is not null. */
	if (!to) {
		here->recording = left == RECORD_ALL ? RECORD_FULL : 0;
		if (left == RECORD_ALL)
			lose(records);
		return 0;
	}
	/* Two CPUs at once may count one call less: the limit is no exact one. */
	if (left != RECORD_ALL)
		here->recording = left - 1;
	struct call call = { .regs = regs, .registers = held, .here = here };
	to->entered_ns = entered_ns;
	to->returned_ns = returned_ns;
	to->pid = get_current_pid_tgid() >> 32;
	to->tid = tid;
	to->number = number;
	to->value = value;
	for (u32 i = 0; i < ARGUMENTS; i++)
		to->arguments[i] = argument(&call, here->arguments[i]);
	to->file.inode = 0;
	to->file.device = 0;
	to->file.type = 0;
	to->flags = 0;
	to->position = name;
	int has_file = value >= 0 && kind != OTHER && kind != LOOK_UP && !(kind == MAP_FILE && to->arguments[3] & MAP_ANONYMOUS);
	u64 address = has_file ? description_of(kind == OPEN ? value : argument(&call, shape->ends[0].descriptor)) : 0;
	struct description *of = map_lookup(&descriptions, &address);
	if (address && of) {
		to->file = of->key;
		to->flags = READ((struct file *)address, f_flags);
		to->position = READ((struct file *)address, f_pos);
	}
	ringbuf_submit(to, BPF_RB_NO_WAKEUP);
	return 0;
}

static inline_always void count_call(const struct call *call, struct thread *thread, u32 tid, u32 number, struct count *count,
	const struct shape *shape, s64 value)
{
	u32 kind = shape->kind;
	if (kind == OTHER || kind == LOOK_UP)
		return;
	if (kind == RELAY) {
		count->bytes += value;
		relayed(call->regs, tid, number, 0, value);
		relayed(call->regs, tid, number, 1, value);
		return;
	}
	if (kind == MOVE) {
		count->bytes += value;
		u64 address = description_of(argument(call, shape->ends[0].descriptor));
		moved(call, thread, tid, shape, &shape->ends[0], address, value);
		return;
	}
	if (kind == MAP_FILE && argument(call, shape->flags) & MAP_ANONYMOUS)
		return;
	u32 descriptor = kind == OPEN ? value : argument(call, shape->ends[0].descriptor);
	u32 code = kind == MAP_FILE && argument(call, shape->protection) & 4; /* PROT_EXEC */
	touched(tid, descriptor, kind, code);
}

/* Number and arguments of a call still stand in the registers when it returns: nothing is done at its entry, outside of windows. */
SEC("raw_tp/sys_exit")
int on_exit(u64 *context)
{
	u32 tid = get_current_pid_tgid(), zero = 0;
	struct thread *thread = thread_of(tid);
	if (!thread || thread->mode >= HELD)
		return 0;
	if (thread->fresh) {
		thread->fresh = 0;
		return 0;
	}
	/* Before anything is counted: what follows is not the call's time. */
	u64 returned_ns = thread->entered_ns ? ktime_get_ns() : 0;
	struct machine *here = map_lookup(&machine, &zero);
	struct registers *held = map_lookup(&registers, &zero);
	if (!here || !held)
		return 0;
	struct call call = { .regs = context[0], .registers = held, .here = here };
	probe_read_kernel(held, REGISTERS * sizeof(u64), (void *)(call.regs + here->registers));
	/* 32 bits: on ARM the upper half of the word is another field, or none. */
	u32 wanted = argument(&call, here->number);
	s64 value = context[1];
	/* The return from a signal handler gives back the registers of what was interrupted, and does not fail. A program that
	 * asks for call -1 is told that there is none. */
	if (wanted == ~0u && value != -NO_CALL) {
		wanted = here->sigreturn;
		value = 0;
	}
	u32 number = wanted < OTHER_NUMBER && thread->mode == NATIVE ? wanted : OTHER_NUMBER;
	struct count *count = map_lookup(&counts, &number);
	struct shape *shape = map_lookup(&shapes, &number);
	if (!count || !shape)
		return 0;
	count->calls++;
	if (value < 0 && value >= -4095) {
		count->failed++;
		failed(number, -value);
	} else {
		count_call(&call, thread, tid, number, count, shape, value);
	}
	if (returned_ns)
		record(call.regs, number, value, tid, returned_ns);
	return 0;
}

/* Attached in windows only. */
SEC("raw_tp/sys_enter")
int on_enter(u64 *context)
{
	struct thread *thread = thread_of(get_current_pid_tgid());
	if (thread && thread->mode < HELD)
		thread->entered_ns = ktime_get_ns();
	return 0;
}

SEC("raw_tp/sched_process_fork")
int on_fork(u64 *context)
{
	struct task_struct *parent = (void *)context[0], *child = (void *)context[1];
	u32 from = READ(parent, pid), to = READ(child, pid);
	struct thread *known = thread_of(from);
	if (!known)
		return 0;
	u32 mode = known->mode;
	struct thread *fresh = enrol(to);
	if (fresh) {
		fresh->mode = mode;
		fresh->fresh = 1;
	}
	return 0;
}

/* A thread that is not the first takes the number of the first when it executes a program. */
SEC("raw_tp/sched_process_exec")
int on_exec(u64 *context)
{
	struct task_struct *task = (void *)context[0];
	u32 before = context[1], now = READ(task, pid), zero = 0;
	struct thread *known = thread_of(before);
	if (!known)
		return 0;
	struct machine *here = map_lookup(&machine, &zero);
	u32 held = known->mode == HELD;
	u32 mode = here && READ(task, thread_info.flags) >> (here->compat_bit & 63) & 1 ? COMPAT : NATIVE;
	if (before != now) {
		leave(before);
		known = enrol(now);
		if (!known)
			return 0;
	}
	/* The exec that a held thread returns from is not the program's. */
	known->fresh = held;
	known->mode = mode;
	if (held)
		settle(task, -1);
	return 0;
}

SEC("raw_tp/sched_process_exit")
int on_end(u64 *context)
{
	struct task_struct *task = (void *)context[0];
	u32 tid = READ(task, pid);
	struct thread *thread = thread_of(tid);
	if (!thread)
		return 0;
	if (thread->mode != HELD) {
		settle(task, 1);
		struct process *process = process_of(READ(task, tgid));
		if (process)
			add(process->ended, 1);
	}
	leave(tid);
	return 0;
}

#include "faults.h"
#include "tails.h"
#include "machine.h"

/* An event of this kind, with what all have. */
static inline_always struct request_event *begin_event(u64 what)
{
	u32 zero = 0;
	struct lost *lost = map_lookup(&losses, &zero);
	if (!lost)
		return 0;
	/* Before room is taken: what is seen in the buffer is older than whoever reads it. */
	u64 now = ktime_get_ns();
	struct request_event *event = ringbuf_reserve(&requests, sizeof(*event), 0);
	if (!event) {
		add(lost->requests, 1);
		return 0;
	}
	event->type = SAMPLE;
	event->misc = 0;
	event->size = sizeof(*event);
	event->identity = IDENTITIES | what;
	u64 task = get_current_pid_tgid();
	event->pid = task >> 32;
	event->tid = task;
	event->time_ns = now;
	event->cpu = get_smp_processor_id();
	event->lost = lost->requests;
	return event;
}

static inline_always void end_event(struct request_event *event)
{
	u64 waiting = ringbuf_query(&requests, BPF_RB_AVAIL_DATA);
	ringbuf_submit(event, waiting > REQUEST_BYTES / 2 ? BPF_RB_FORCE_WAKEUP : BPF_RB_NO_WAKEUP);
}

/* Whose page cache the request's first page is in; 0: it is in none. */
static inline_always struct inode *cached_for(struct request *request)
{
	struct bio *bio = READ(request, bio);
	struct bio_vec *first = READ(bio, bi_io_vec);
	struct page *page = READ(first, bv_page);
	if (EXISTS(struct page, compound_head)) {
		unsigned long head = READ(page, compound_head);
		if (head & 1)
			page = (struct page *)(head - 1);
	}
	unsigned long mapping = (unsigned long)READ(page, mapping);
	/* PAGE_MAPPING_FLAGS: not of a file. */
	if (!mapping || mapping & 3)
		return 0;
	return READ((struct address_space *)mapping, host);
}

/* A bit of the flags of a request, by its number. */
#define HAS(flags, bit) ((flags) >> (VALUE(enum req_flag_bits, bit) & 31) & 1)

/* Whether it is about the file system's own data. ext4 reads inodes ahead without a word on what they are, through the page cache of the
 * block device. */
static inline_always u8 is_metadata(struct request *request, u32 flags)
{
	if (HAS(flags, __REQ_META))
		return 1;
	struct inode *inode = cached_for(request);
	return inode && (READ(inode, i_mode) & FILE_TYPE) == BLOCK_DEVICE;
}

/* Names the task that wrote the bytes of a request that a thread of the kernel makes; of a request that is done its device is remembered. */
static inline_always void charge(struct request_event *event, struct request *request, u32 done)
{
	if (done) {
		struct cpu_times *times = times_of(event->cpu);
		if (times) {
			times->done = (u64)event->major << 32 | event->minor;
			times->done_ns = event->time_ns;
		}
		return;
	}
	if (!event->kernel_thread)
		return;
	u64 inode = (u64)cached_for(request);
	if (!inode)
		return;
	struct writer *writer = map_lookup(&writers, &inode);
	if (!writer)
		return;
	event->charged = 1;
	event->pid = writer->pid;
	event->tid = writer->pid;
	__builtin_memcpy(event->task, writer->task, COMM_BYTES);
}

static inline_always void tell(u64 what, struct request *request, u32 bytes)
{
	struct request_event *event = begin_event(what);
	if (!event)
		return;
	event->address = (u64)request;
	struct gendisk *disk;
	if (EXISTS(struct request_queue, disk)) {
		struct request_queue *queue = READ(request, q);
		disk = READ(queue, disk);
	} else {
		disk = READ(request, rq_disk);
	}
	event->major = READ(disk, major);
	event->minor = READ(disk, first_minor);
	event->sector = READ(request, __sector);
	event->bytes = bytes;
	/* REQ_OP_MASK */
	u32 flags = READ(request, cmd_flags);
	event->operation = flags;
	event->purpose = HAS(flags, __REQ_RAHEAD) ? AHEAD : 0;
	/* A read is operation 0. Of one that is done it is known. */
	if (!event->operation && what != DONE && is_metadata(request, flags))
		event->purpose |= METADATA;
	struct task_struct *current = get_current_task();
	/* PF_KTHREAD */
	event->kernel_thread = READ(current, flags) >> 21 & 1;
	event->charged = 0;
	get_current_comm(event->task, COMM_BYTES);
	if (whole_machine)
		charge(event, request, what == DONE);
	end_event(event);
}

/* Whether switches of this thread are told. One that is held is in the middle of its exec when it becomes the program, and may sleep there.
 * No thread has the number 0: it is an idle CPU's. */
static inline_always int switches_are_told(u32 tid)
{
	return tid && thread_of(tid);
}

/* Copies the registers that lead through the user stack of the current thread to the word `at` on. Its stack pointer, or 0. */
static inline_always u64 copy_registers(struct switch_event *event, u64 at)
{
	if (!instruction_at)
		return 0;
	const void *registers = task_pt_regs(get_current_task_btf());
	u64 pointer = 0;
	if (probe_read_kernel(&event->frames[at], sizeof(u64), registers + instruction_at) ||
	    probe_read_kernel(&pointer, sizeof(u64), registers + pointer_at) ||
	    probe_read_kernel(&event->frames[at + 2], sizeof(u64), registers + frame_at) || pointer % sizeof(u64))
		return 0;
	event->frames[at + 1] = pointer;
	return pointer;
}

/* Copies the user stack behind these registers, as far as there are frames on it. How many words. */
static inline_always u32 copy_stack(struct switch_event *event, u64 at, u64 pointer)
{
	struct task_struct *task = get_current_task_btf();
	struct mm_struct *memory = READ(task, mm);
	/* Behind the first of these that is not below the pointer there are none. */
	u64 room = READ(memory, start_stack) - pointer, other = -1UL;
	if (EXISTS(struct thread_struct, fsbase))
		other = READ(task, thread.fsbase) - pointer;
	if (other < room)
		room = other;
	u32 words = 0;
	for (; words < STACK_PIECES * PIECE_WORDS && words * sizeof(u64) < room; words += PIECE_WORDS)
		if (probe_read_user(&event->frames[at + STACK_REGISTERS + words], PIECE_WORDS * sizeof(u64), (const void *)pointer + words * sizeof(u64)))
			break;
	return words;
}

/* A CPU goes from the current thread to another one. Attached in windows only. */
SEC("raw_tp/sched_switch")
int on_switch(u64 *context)
{
	struct task_struct *previous = (void *)context[1], *next = (void *)context[2];
	u64 task = get_current_pid_tgid();
	u32 next_tid = READ(next, pid), zero = 0;
	int left = switches_are_told(task), gets = switches_are_told(next_tid);
	if (!left && !gets)
		return 0;
	u64 now = ktime_get_ns();
	struct switching *own = map_lookup(&switching, &zero);
	if (!own)
		return 0;
	struct switch_event *event = &own->event;
	event->type = SAMPLE;
	event->misc = 0;
	event->identity = IDENTITIES | SWITCHED;
	event->pid = task >> 32;
	event->tid = task;
	event->time_ns = now;
	event->cpu = get_smp_processor_id();
	event->next_pid = gets ? READ(next, tgid) : 0;
	event->next_tid = gets ? next_tid : 0;
	u32 flags = 0;
	u64 kernel = 0, user = 0;
	u32 words = 0, copied = 0;
	u64 waiting = ringbuf_query(&requests, BPF_RB_AVAIL_DATA);
	if (left) {
		/* TASK_RUNNING is 0. */
		u64 state = EXISTS(struct task_struct, __state) ? READ(previous, __state) : READ(previous, state);
		flags = state ? LEFT : LEFT | PREEMPTED;
		long got = get_stack(context, event->frames, MAX_FRAMES * sizeof(u64), 0);
		kernel = got > 0 ? got / sizeof(u64) : 0;
		OPAQUE(kernel);
		kernel &= MAX_FRAMES;
		got = get_stack(context, &event->frames[kernel], MAX_FRAMES * sizeof(u64), BPF_F_USER_STACK);
		user = got > 0 ? got / sizeof(u64) : 0;
		OPAQUE(user);
		user &= MAX_FRAMES;
		/* Switches come before copies where they come faster than they are read: registers alone tell a stack that was copied
		 * before. */
		u64 pointer = user ? copy_registers(event, kernel + user) : 0;
		if (pointer) {
			flags |= REGISTERS_TOLD;
			copied = STACK_REGISTERS;
			if (waiting < REQUEST_BYTES / 8)
				words = copy_stack(event, kernel + user, pointer);
		}
	}
	event->flags = flags;
	event->kernel_frames = kernel;
	event->user_frames = user;
	event->stack_words = words;
	u64 size = __builtin_offsetof(struct switch_event, frames) + (kernel + user + copied + words) * sizeof(u64);
	event->size = size;
	if (ringbuf_output(&requests, event, size, waiting > REQUEST_BYTES / 2 ? BPF_RB_FORCE_WAKEUP : BPF_RB_NO_WAKEUP))
		event->lost++;
	else
		event->lost = 0;
	own->switches++;
	own->spent_ns += ktime_get_ns() - now;
	return 0;
}

#define ON_REQUEST(name, tracepoint, what) \
	SEC("raw_tp/" tracepoint) \
	int name(u64 *context) \
	{ \
		struct request *request = (void *)context[0]; \
		tell(what, request, READ(request, __data_len)); \
		return 0; \
	} \
	/* Before Linux 5.11 the queue came first. The kernel refuses to attach a program that reads more than there is. */ \
	SEC("raw_tp/" tracepoint) \
	int name##_of_queue(u64 *context) \
	{ \
		struct request *request = (void *)context[1]; \
		tell(what, request, READ(request, __data_len)); \
		return 0; \
	}

ON_REQUEST(on_inserted, "block_rq_insert", INSERTED)
ON_REQUEST(on_issued, "block_rq_issue", ISSUED)
/* The request that is no more: its bytes belong to another one. */
ON_REQUEST(on_merged, "block_rq_merge", MERGED)

SEC("raw_tp/block_rq_complete")
int on_done(u64 *context)
{
	tell(DONE, (struct request *)context[0], context[2]);
	return 0;
}

/* A request of a ring on a file is under way now (1), or no more (-1). Told is when the first one comes and the last one goes, of all
 * rings together. Two CPUs at once may tell that in the wrong order; the next one that comes or goes alone mends it. */
static inline_always void ring_files(s32 change)
{
	u32 zero = 0;
	s32 *count = map_lookup(&ring_in_flight, &zero);
	if (!count)
		return;
	s32 before = __sync_fetch_and_add(count, change);
	if (change > 0 ? before != 0 : before != 1)
		return;
	struct request_event *event = begin_event(change > 0 ? RING_BUSY : RING_IDLE);
	if (!event)
		return;
	__builtin_memset(&event->address, 0, sizeof(*event) - __builtin_offsetof(struct request_event, address));
	end_event(event);
}

static inline_always u32 is_file(u64 address)
{
	struct inode *inode = READ((struct file *)address, f_inode);
	u32 type = READ(inode, i_mode) & 0170000;
	return has_offsets(type);
}

static inline_always struct thread *member(u64 task)
{
	/* The kernel's own threads of a program are known by its first thread. */
	struct thread *thread = thread_of(task);
	if (!thread)
		thread = thread_of(task >> 32);
	return thread && thread->mode < HELD ? thread : 0;
}

static inline_always int ring_submitted(struct io_kiocb *request)
{
	if (!member(get_current_pid_tgid()) || !EXISTS(struct io_kiocb, cqe))
		return 0;
	u32 operation = READ(request, opcode) & (RING_OPERATIONS - 1);
	struct ring_count *count = map_lookup(&ring_counts, &operation);
	u32 *kind = map_lookup(&ring_kinds, &operation);
	if (!count || !kind)
		return 0;
	count->requests++;
	if (*kind == RING_EVENT)
		return 0;
	/* REQ_F_FIXED_FILE */
	struct ring_request fresh = { .submitted_ns = ktime_get_ns(), .descriptor = READ(request, cqe.fd),
		.registered = READ(request, flags) & 1 };
	if (*kind == RING_BY_DESCRIPTOR) {
		if (fresh.registered) {
			struct ring_file file = { .ring = (u64)READ(request, ctx), .index = fresh.descriptor };
			if (map_lookup(&ring_events, &file))
				return 0;
		} else {
			u64 address = description_at(fresh.descriptor, 0);
			if (address && !is_file(address))
				return 0;
		}
	}
	u64 address = (u64)request;
	/* One of that address whose end was not told (IOSQE_CQE_SKIP_SUCCESS) is counted already. */
	if (map_lookup(&ring_requests, &address))
		return 0;
	if (map_update(&ring_requests, &address, &fresh, BPF_NOEXIST)) {
		lose(ring_requests);
		return 0;
	}
	ring_files(1);
	return 0;
}

SEC("raw_tp/io_uring_submit_req")
int on_ring_submit(u64 *context)
{
	return ring_submitted((void *)context[0]);
}

/* Before Linux 6.0 there were three arguments and more, and the first one was another. A kernel with fewer refuses this one. */
SEC("raw_tp/io_uring_submit_sqe")
int on_ring_submit_old(u64 *context)
{
	u64 third = context[2];
	OPAQUE(third);
	return 0;
}

SEC("raw_tp/io_uring_complete")
int on_ring_done(u64 *context)
{
	u64 address = context[1];
	struct ring_request *known = map_lookup(&ring_requests, &address);
	if (!known)
		return 0;
	struct io_kiocb *request = (void *)address;
	u32 operation = READ(request, opcode) & (RING_OPERATIONS - 1);
	u32 on_event = 0;
	if (known->registered) {
		u64 file = (u64)READ(request, file);
		if (file && !is_file(file)) {
			struct ring_file event = { .ring = (u64)READ(request, ctx), .index = known->descriptor };
			on_event = 1;
			map_update(&ring_events, &event, &on_event, BPF_ANY);
		}
	}
	struct ring_count *count = map_lookup(&ring_counts, &operation);
	if (count && !on_event) {
		count->done++;
		count->time_ns += ktime_get_ns() - known->submitted_ns;
		if (EXISTS(struct io_kiocb, cqe)) {
			s32 result = READ(request, cqe.res);
			if (result > 0)
				count->bytes += result;
			count->failed += result < 0;
		}
	}
	map_delete(&ring_requests, &address);
	ring_files(-1);
	return 0;
}

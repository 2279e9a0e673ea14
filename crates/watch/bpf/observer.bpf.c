/* SPDX-License-Identifier: MIT OR GPL-2.0
 * Counts the system calls of a program in the kernel: by number, by file and by offset. It knows neither numbers nor names of
 * calls: `shapes` says of each number what its arguments mean, and is filled before the program runs.
 * Sums that several threads share are changed by atomic additions; nothing is ever taken out of a sum.
 * Built by `cargo xtask observer`; the bytes are committed beside this file. */
#include "kernel.h"

char declared_license[] SEC("license") = "Dual MIT/GPL";

enum {
	MAX_THREADS = 65536,
	MAX_NUMBERS = 512,
	/* Calls of another ABI (32-bit programs), and numbers beyond the table. */
	OTHER_NUMBER = MAX_NUMBERS - 1,
	MAX_ERRORS = 4096,
	MAX_DESCRIPTIONS = 65536,
	MAX_FILES = 65536,
	MAX_MARKS = 262144,
	PATH_BYTES = 1024,
	NAME_BYTES = 256,
	MAX_COMPONENTS = 40,
	PAGE = 4096,
	MAX_MARKS_OF_A_CALL = 96,
	EEXIST = 17,
	SIZE_CLASSES = 32,
};

/* What a call does, beyond its number. Mirrors `Shape` of the loader. */
enum kind { OTHER, MOVE, RELAY, SEEK, SYNC, OPEN, MAP_FILE };
enum place { AT_POSITION, AT_ARGUMENT, AT_ARGUMENT_OR_POSITION, AT_POINTER };
enum direction { READS, WRITES };

/* Arguments are told by where struct pt_regs of this architecture holds them, in bytes. */
enum { NO_ARGUMENT = 0xffff };

struct end {
	u16 descriptor;
	u16 offset;
	u8 place;
	u8 direction;
};

struct shape {
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
};

/* COMPAT: runs a 32-bit program. HELD: not yet the program that is observed, but what becomes it by exec. */
enum { NATIVE, COMPAT, HELD };

struct thread {
	u64 entered_ns;
	u32 number;
	u32 mode;
};

struct count {
	u64 calls;
	u64 failed;
	u64 time_ns;
	u64 bytes;
};

/* Sums only: userspace and `fold` add field by field. */
struct access {
	u64 calls;
	u64 bytes;
	u64 time_ns;
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
	u64 sizes[SIZE_CLASSES];
};

struct sums {
	struct access access[2];
	u64 opens;
	u64 syncs;
	u64 maps;
	u64 code_maps;
};

struct file_key {
	u64 inode;
	u32 device;
	/* File type bits of i_mode. */
	u32 type;
};

enum { MOVED = 1, SOUGHT = 2 };

struct description {
	u64 inode_address;
	struct file_key key;
	/* Where the last transfer of each direction ended. */
	u64 end[2];
	u32 has_end[2];
	u32 last;
	u32 padding;
	struct sums sums;
};

struct mark_key {
	struct file_key file;
	u64 block;
	u64 direction;
};

struct path_text {
	u32 bytes;
	u32 whole;
	/* Components from the file up to the root, each with a final 0. */
	char text[PATH_BYTES + NAME_BYTES];
};

/* What did not fit. */
struct lost {
	u64 threads;
	u64 descriptions;
	u64 files;
	u64 marks;
};

struct error_key {
	u32 number;
	u32 error;
};

MAP(BPF_MAP_TYPE_HASH, u32, struct thread, MAX_THREADS, BPF_F_NO_PREALLOC) threads SEC(".maps");
MAP(BPF_MAP_TYPE_ARRAY, u32, struct shape, MAX_NUMBERS, 0) shapes SEC(".maps");
MAP(BPF_MAP_TYPE_PERCPU_ARRAY, u32, struct count, MAX_NUMBERS, 0) counts SEC(".maps");
MAP(BPF_MAP_TYPE_HASH, struct error_key, u64, MAX_ERRORS, BPF_F_NO_PREALLOC) errors SEC(".maps");
MAP(BPF_MAP_TYPE_HASH, u64, struct description, MAX_DESCRIPTIONS, BPF_F_NO_PREALLOC) descriptions SEC(".maps");
MAP(BPF_MAP_TYPE_HASH, struct file_key, struct sums, MAX_FILES, BPF_F_NO_PREALLOC) files SEC(".maps");
MAP(BPF_MAP_TYPE_HASH, struct file_key, struct path_text, MAX_FILES, BPF_F_NO_PREALLOC) paths SEC(".maps");
MAP(BPF_MAP_TYPE_HASH, struct mark_key, u8, MAX_MARKS, BPF_F_NO_PREALLOC) marks SEC(".maps");
MAP(BPF_MAP_TYPE_PERCPU_ARRAY, u32, struct path_text, 1, 0) scratch SEC(".maps");
MAP(BPF_MAP_TYPE_ARRAY, u32, struct lost, 1, 0) losses SEC(".maps");
MAP(BPF_MAP_TYPE_ARRAY, u32, struct machine, 1, 0) machine SEC(".maps");

/* Zeroes to make new entries from; larger than the stack. */
static const struct description no_description = {};
static const struct sums no_sums = {};

#define add(sum, value) __sync_fetch_and_add(&(sum), (value))

#define lose(what) ({ \
	u32 zero__ = 0; \
	struct lost *lost__ = map_lookup(&losses, &zero__); \
	if (lost__) \
		add(lost__->what, 1); \
})

static inline_always u64 argument(u64 regs, u32 at)
{
	u64 value = 0;
	probe_read_kernel(&value, sizeof(value), (void *)(regs + at));
	return value;
}

/* The open file description behind a descriptor of the current task, as an address; 0: there is none. */
static inline_always u64 description_of(u32 descriptor)
{
	struct files_struct *table = READ(get_current_task(), files);
	struct fdtable *fdt = READ(table, fdt);
	if (descriptor >= READ(fdt, max_fds))
		return 0;
	struct file **slots = READ(fdt, fd);
	u64 file = 0;
	probe_read_kernel(&file, sizeof(file), &slots[descriptor]);
	return file;
}

/* Adds what was done through a description that is gone to its file.
 * This function and those below are neither inlined nor static, so that the verifier follows each once. */
__attribute__((noinline)) int retire(u64 address)
{
	struct description *old = map_lookup(&descriptions, &address);
	if (!old)
		return 0;
	struct file_key key = old->key;
	struct sums *sums = map_lookup(&files, &key);
	if (!sums) {
		map_update(&files, &key, &no_sums, BPF_NOEXIST);
		sums = map_lookup(&files, &key);
	}
	if (sums) {
		u64 *to = (u64 *)sums;
		const u64 *from = (const u64 *)&old->sums;
		for (u32 i = 0; i < sizeof(struct sums) / sizeof(u64); i++)
			add(to[i], from[i]);
	} else {
		lose(files);
	}
	map_delete(&descriptions, &address);
	return 0;
}

/* Writes the path of a file down, component by component from its end, over the mount points up to the root. */
__attribute__((noinline)) int remember_path(u64 address)
{
	struct description *of = map_lookup(&descriptions, &address);
	u32 zero = 0;
	struct path_text *path = map_lookup(&scratch, &zero);
	if (!of || !path)
		return 0;
	struct file_key key = of->key;
	if (map_lookup(&paths, &key))
		return 0;
	struct file *file = (struct file *)address;
	struct vfsmount *mounted = READ(file, f_path.mnt);
	struct dentry *dentry = READ(file, f_path.dentry);
	struct mount *mount = (void *)mounted - __builtin_preserve_field_info(((struct mount *)0)->mnt, 0);
	u32 at = 0;
	path->whole = 0;
	for (u32 i = 0; i < MAX_COMPONENTS; i++) {
		struct dentry *parent = READ(dentry, d_parent);
		if (dentry == READ(mount, mnt.mnt_root) || dentry == parent) {
			struct mount *above = READ(mount, mnt_parent);
			if (above == mount || dentry != READ(mount, mnt.mnt_root)) {
				path->whole = above == mount;
				break;
			}
			dentry = READ(mount, mnt_mountpoint);
			mount = above;
			continue;
		}
		if (at > PATH_BYTES)
			break;
		long bytes = probe_read_kernel_str(&path->text[at], NAME_BYTES, READ(dentry, d_name.name));
		if (bytes <= 0 || bytes > NAME_BYTES)
			break;
		at += bytes;
		dentry = parent;
	}
	path->bytes = at;
	map_update(&paths, &key, path, BPF_NOEXIST);
	return 0;
}

/* Begins the sums of a description anew: the kernel uses the memory of closed ones again. */
__attribute__((noinline)) int renew(u64 address)
{
	retire(address);
	if (map_update(&descriptions, &address, &no_description, BPF_NOEXIST)) {
		lose(descriptions);
		return 0;
	}
	struct description *of = map_lookup(&descriptions, &address);
	if (!of)
		return 0;
	struct inode *inode = READ((struct file *)address, f_inode);
	struct super_block *super = READ(inode, i_sb);
	of->key.inode = READ(inode, i_ino);
	of->key.device = READ(super, s_dev);
	of->key.type = READ(inode, i_mode) & 0170000;
	of->inode_address = (u64)inode;
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

/* Binary logarithm of the blocks in the group of this block. */
__attribute__((noinline)) u32 group_shift(u64 block)
{
	u32 class = size_class((block >> 6) + 1);
	return class ? class - 1 : 0;
}

/* The mark in the group of this block, if the bytes cover it. Returns 1: covered; 3: covered, and not for the first time. */
__attribute__((noinline)) u32 mark(u64 address, u32 direction, u64 block, u64 offset, u64 end)
{
	struct description *of = map_lookup(&descriptions, &address);
	if (!of)
		return 0;
	struct access *sums = &of->sums.access[direction & 1];
	u32 shift = group_shift(block) & 63;
	u64 group = block >> shift;
	u64 hash = mix(group << 6 | shift);
	u64 marked = (group << shift) + (hash & ((1ULL << shift) - 1));
	u64 at = marked * PAGE + (hash >> 40) % PAGE;
	if (at < offset || at >= end)
		return 0;
	struct mark_key key = { .file = of->key, .direction = direction, .block = marked };
	u64 stands_for = (u64)PAGE << shift;
	u8 one = 1;
	add(sums->mark_bytes, stands_for);
	long refused = map_update(&marks, &key, &one, BPF_NOEXIST);
	if (refused == -EEXIST)
		return 3;
	if (refused)
		lose(marks);
	add(sums->fresh_mark_bytes, stands_for);
	return 1;
}

/* Which bytes were moved before? A file has marks: single bytes, one in each group of blocks of 4096 bytes, drawn by a hash of the
 * group. A group is one block in the first 128 blocks, and 2^k blocks in [64 * 2^k, 128 * 2^k): 64 marks in each octave, each of
 * which stands for a known number of bytes. Whoever covers a mark says whether it was covered before. */
__attribute__((noinline)) int cover(u64 address, u32 direction, u64 offset, u64 bytes)
{
	u64 block = offset / PAGE, end = offset + bytes;
	u32 found = 0;
	for (u32 i = 0; i < MAX_MARKS_OF_A_CALL && block * PAGE < end; i++) {
		u32 shift = group_shift(block) & 63;
		found |= mark(address, direction, block, offset, end);
		block = ((block >> shift) + 1) << shift;
	}
	struct description *of = map_lookup(&descriptions, &address);
	if (!of)
		return 0;
	struct access *sums = &of->sums.access[direction & 1];
	add(sums->marked, found & 1);
	add(sums->repeated, found >> 1 & 1);
	return 0;
}

static inline_always int has_offsets(u32 type)
{
	return type == 0100000 || type == 0060000 || type == 0040000;
}

struct transfer {
	u64 regs;
	u64 address;
	u64 asked;
	u64 bytes;
	u64 time_ns;
};

static inline_always void moved(struct description *of, struct end *end, struct transfer *transfer)
{
	struct file *file = (struct file *)transfer->address;
	u32 direction = end->direction & 1;
	struct access *sums = &of->sums.access[direction];
	add(sums->calls, 1);
	add(sums->bytes, transfer->bytes);
	add(sums->time_ns, transfer->time_ns);
	add(sums->sizes[size_class(transfer->asked) & (SIZE_CLASSES - 1)], 1);
	u32 zero = 0;
	struct machine *here = map_lookup(&machine, &zero);
	if (!here || !has_offsets(of->key.type))
		return;
	u32 flags = READ(file, f_flags);
	if (flags & here->o_direct)
		add(sums->direct, 1);
	/* O_SYNC contains this bit of O_DSYNC. */
	if (flags & 010000)
		add(sums->synchronous, 1);
	if (!transfer->bytes)
		return;
	u64 given = argument(transfer->regs, end->offset);
	int by_position = end->place == AT_POSITION || (end->place == AT_ARGUMENT_OR_POSITION && given == ~0ULL) ||
		(end->place == AT_POINTER && !given);
	int append = direction == WRITES && (flags & 02000);
	if (!by_position && end->place == AT_POINTER)
		return;
	/* The position has moved on by what was moved. */
	u64 offset = by_position || append ? (u64)READ(file, f_pos) - transfer->bytes : given;
	add(sums->placed, 1);
	if (append || of->has_end[direction])
		add(sums->sequential_known, 1);
	if (append || (of->has_end[direction] && of->end[direction] == offset))
		add(sums->sequential, 1);
	if ((offset | transfer->asked) & (PAGE - 1))
		add(sums->unaligned, 1);
	if (of->last == SOUGHT)
		add(sums->after_seek, 1);
	of->end[direction] = offset + transfer->bytes;
	of->has_end[direction] = 1;
	of->last = MOVED;
	cover(transfer->address, direction, offset, transfer->bytes);
}

/* A call that succeeded, at one of its two ends. */
__attribute__((noinline)) int succeeded(u64 regs, u32 number, u32 end, u64 value, u64 time_ns)
{
	struct shape *shape = map_lookup(&shapes, &number);
	if (!shape || end > 1)
		return 0;
	u64 descriptor = shape->kind == OPEN ? value : argument(regs, shape->ends[end].descriptor);
	u64 address = description_of(descriptor);
	if (!address)
		return 0;
	struct description *of = map_lookup(&descriptions, &address);
	if (!of || shape->kind == OPEN || of->inode_address != (u64)READ((struct file *)address, f_inode)) {
		renew(address);
		of = map_lookup(&descriptions, &address);
		if (!of)
			return 0;
	}
	if (shape->kind == OPEN) {
		add(of->sums.opens, 1);
	} else if (shape->kind == SYNC) {
		add(of->sums.syncs, 1);
	} else if (shape->kind == SEEK) {
		of->last = SOUGHT;
	} else if (shape->kind == MAP_FILE) {
		add(of->sums.maps, 1);
		if (argument(regs, shape->protection) & 4) /* PROT_EXEC */
			add(of->sums.code_maps, 1);
	} else {
		struct transfer transfer = { .regs = regs, .address = address, .bytes = value, .time_ns = time_ns };
		transfer.asked = shape->asked == NO_ARGUMENT ? value : argument(regs, shape->asked);
		moved(of, &shape->ends[end], &transfer);
	}
	return 0;
}

SEC("raw_tp/sys_enter")
int on_enter(u64 *context)
{
	u32 tid = get_current_pid_tgid();
	struct thread *thread = map_lookup(&threads, &tid);
	if (!thread || thread->mode == HELD)
		return 0;
	u64 number = context[1];
	thread->number = number < OTHER_NUMBER && thread->mode == NATIVE ? number : OTHER_NUMBER;
	thread->entered_ns = ktime_get_ns();
	return 0;
}

SEC("raw_tp/sys_exit")
int on_exit(u64 *context)
{
	u32 tid = get_current_pid_tgid();
	struct thread *thread = map_lookup(&threads, &tid);
	/* A child returns from a call that its parent made. */
	if (!thread || !thread->entered_ns)
		return 0;
	u64 time_ns = ktime_get_ns() - thread->entered_ns;
	thread->entered_ns = 0;
	u32 number = thread->number;
	struct count *count = map_lookup(&counts, &number);
	struct shape *shape = map_lookup(&shapes, &number);
	if (!count || !shape)
		return 0;
	s64 value = context[1];
	count->calls++;
	count->time_ns += time_ns;
	if (value < 0 && value >= -4095) {
		count->failed++;
		struct error_key key = { .number = number, .error = -value };
		u64 *sum = map_lookup(&errors, &key), one = 1;
		if (!sum && map_update(&errors, &key, &one, BPF_NOEXIST))
			sum = map_lookup(&errors, &key);
		if (sum)
			add(*sum, 1);
		return 0;
	}
	if (shape->kind == MOVE || shape->kind == RELAY)
		count->bytes += value;
	if (shape->kind == OTHER)
		return 0;
	if (shape->kind == MAP_FILE && argument(context[0], shape->flags) & 0x20) /* MAP_ANONYMOUS */
		return 0;
	succeeded(context[0], number, 0, value, time_ns);
	if (shape->kind == RELAY)
		succeeded(context[0], number, 1, value, time_ns);
	return 0;
}

SEC("raw_tp/sched_process_fork")
int on_fork(u64 *context)
{
	struct task_struct *parent = (void *)context[0], *child = (void *)context[1];
	u32 from = READ(parent, pid), to = READ(child, pid);
	struct thread *known = map_lookup(&threads, &from);
	if (!known)
		return 0;
	struct thread fresh = { .mode = known->mode };
	if (map_update(&threads, &to, &fresh, BPF_ANY))
		lose(threads);
	return 0;
}

/* A thread that is not the first takes the number of the first when it executes a program. */
SEC("raw_tp/sched_process_exec")
int on_exec(u64 *context)
{
	struct task_struct *task = (void *)context[0];
	u32 before = context[1], now = READ(task, pid), zero = 0;
	struct thread *known = map_lookup(&threads, &before);
	if (!known)
		return 0;
	struct thread thread = *known;
	struct machine *here = map_lookup(&machine, &zero);
	thread.mode = here && READ(task, thread_info.flags) >> (here->compat_bit & 63) & 1 ? COMPAT : NATIVE;
	if (before != now)
		map_delete(&threads, &before);
	map_update(&threads, &now, &thread, BPF_ANY);
	return 0;
}

SEC("raw_tp/sched_process_exit")
int on_end(u64 *context)
{
	struct task_struct *task = (void *)context[0];
	u32 tid = READ(task, pid);
	struct thread *thread = map_lookup(&threads, &tid);
	if (!thread)
		return 0;
	u32 number = thread->number;
	struct count *count = map_lookup(&counts, &number);
	/* A call that never returns has its time, and is not counted. */
	if (count && thread->entered_ns)
		count->time_ns += ktime_get_ns() - thread->entered_ns;
	map_delete(&threads, &tid);
	return 0;
}

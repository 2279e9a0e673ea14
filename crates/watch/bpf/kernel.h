/* SPDX-License-Identifier: MIT OR GPL-2.0
 * The kernel's types as far as the observer reads them, and the helpers that it calls. Field offsets are those of the
 * running kernel: CO-RE relocations are applied when the object is loaded. Helper numbers: enum bpf_func_id of
 * include/uapi/linux/bpf.h. */
#pragma once

typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;
typedef int s32;
typedef long long s64;

#define SEC(name) __attribute__((section(name), used))
#define inline_always inline __attribute__((always_inline))

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct qstr {
	u32 len;
	const unsigned char *name;
};

struct super_block {
	u32 s_dev;
};

struct inode {
	u16 i_mode;
	unsigned long i_ino;
	u32 i_generation;
	s64 i_size;
	struct super_block *i_sb;
};

struct dentry {
	struct dentry *d_parent;
	struct inode *d_inode;
	struct qstr d_name;
};

struct vfsmount {
	struct dentry *mnt_root;
};

struct mount {
	struct mount *mnt_parent;
	struct dentry *mnt_mountpoint;
	struct vfsmount mnt;
};

struct path {
	struct vfsmount *mnt;
	struct dentry *dentry;
};

struct file {
	struct inode *f_inode;
	u32 f_flags;
	struct path f_path;
	s64 f_pos;
};

/* Where a process is. */
struct fs_struct {
	struct path pwd;
};

struct fdtable {
	struct file **fd;
};

struct files_struct {
	struct fdtable *fdt;
};

struct thread_info {
	unsigned long flags;
};

/* Each field depends on the kernel's configuration. */
struct task_io_accounting {
	u64 read_bytes;
	u64 write_bytes;
};

struct sched_info {
	unsigned long long last_queued;
};

struct rq;

struct cfs_rq {
	struct rq *rq;
	/* Linux 6.14 and later. */
	u32 h_nr_runnable;
};

struct rt_rq {
	u32 rt_nr_running;
};

struct rq {
	u64 clock;
	u32 nr_running;
	struct cfs_rq cfs;
	struct rt_rq rt;
};

struct sched_entity {
	struct cfs_rq *cfs_rq;
};

struct mm_struct {
	/* Where the stack of the first thread began. */
	unsigned long start_stack;
};

/* On x86. */
struct thread_struct {
	/* Data of a thread; where a C library makes its stack, they lie right behind it. */
	unsigned long fsbase;
};

struct task_struct {
	struct thread_info thread_info;
	struct mm_struct *mm;
	struct thread_struct thread;
	u32 flags;
	/* Linux 5.14 and later; before, the one below. */
	u32 __state;
	s64 state;
	s32 pid;
	s32 tgid;
	struct fs_struct *fs;
	struct files_struct *files;
	struct task_io_accounting ioac;
	struct sched_entity se;
	/* The two below depend on the kernel's configuration. */
	struct sched_info sched_info;
	u32 psi_flags;
};

struct address_space {
	struct inode *host;
};

struct page {
	unsigned long compound_head;
	struct address_space *mapping;
};

struct bio_vec {
	struct page *bv_page;
};

struct bio {
	struct bio_vec *bi_io_vec;
};

struct gendisk {
	s32 major;
	s32 first_minor;
};

struct request_queue {
	/* Linux 5.15 and later. */
	struct gendisk *disk;
};

struct request {
	struct request_queue *q;
	/* Before Linux 5.17. */
	struct gendisk *rq_disk;
	u32 cmd_flags;
	u32 __data_len;
	u64 __sector;
	struct bio *bio;
};

struct io_cqe {
	u64 user_data;
	s32 res;
	/* Until the file is known. */
	s32 fd;
};

struct io_kiocb {
	struct file *file;
	u8 opcode;
	/* Of four or eight bytes. */
	u64 flags;
	/* Linux 5.19 and later. */
	struct io_cqe cqe;
	void *ctx;
};

/* The registers before it differ between architectures. */
struct bpf_perf_event_data {
	u64 addr;
};

/* The values differ between kernels. */
enum req_flag_bits { __REQ_META = 12, __REQ_RAHEAD = 19 };

#pragma clang attribute pop

enum { BPF_ANY, BPF_NOEXIST, BPF_EXIST };
enum { BPF_MAP_TYPE_HASH = 1, BPF_MAP_TYPE_ARRAY = 2, BPF_MAP_TYPE_PERCPU_HASH = 5, BPF_MAP_TYPE_PERCPU_ARRAY = 6,
	BPF_MAP_TYPE_STACK_TRACE = 7, BPF_MAP_TYPE_LRU_HASH = 9, BPF_MAP_TYPE_RINGBUF = 27 };
enum { BPF_F_NO_PREALLOC = 1 };
enum { BPF_RB_NO_WAKEUP = 1, BPF_RB_FORCE_WAKEUP = 2 };
enum { BPF_RB_AVAIL_DATA = 0 };
enum { BPF_F_USER_STACK = 1 << 8 };

#define MAP(map_type, key_type, value_type, entries, flags) \
	struct { \
		int (*type)[map_type]; \
		int (*max_entries)[entries]; \
		int (*map_flags)[flags]; \
		key_type *key; \
		value_type *value; \
	}

#define RING(bytes) \
	struct { \
		int (*type)[BPF_MAP_TYPE_RINGBUF]; \
		int (*max_entries)[bytes]; \
	}

static void *(*const map_lookup)(void *map, const void *key) = (void *)1;
static long (*const map_update)(void *map, const void *key, const void *value, u64 flags) = (void *)2;
static long (*const map_delete)(void *map, const void *key) = (void *)3;
static u64 (*const ktime_get_ns)(void) = (void *)5;
static u32 (*const get_smp_processor_id)(void) = (void *)8;
static u64 (*const get_current_pid_tgid)(void) = (void *)14;
static long (*const get_current_comm)(void *to, u32 size) = (void *)16;
static long (*const get_stackid)(void *context, void *map, u64 flags) = (void *)27;
static struct task_struct *(*const get_current_task)(void) = (void *)35;
static struct task_struct *(*const get_current_task_btf)(void) = (void *)158;
static long (*const get_stack)(void *context, void *to, u32 size, u64 flags) = (void *)67;
static long (*const probe_read_user)(void *to, u32 size, const void *from) = (void *)112;
static long (*const probe_read_kernel)(void *to, u32 size, const void *from) = (void *)113;
static long (*const probe_read_user_str)(void *to, u32 size, const void *from) = (void *)114;
static long (*const probe_read_kernel_str)(void *to, u32 size, const void *from) = (void *)115;
static long (*const ringbuf_output)(void *ring, void *from, u64 size, u64 flags) = (void *)130;
static void *(*const ringbuf_reserve)(void *ring, u64 size, u64 flags) = (void *)131;
static void (*const ringbuf_submit)(void *record, u64 flags) = (void *)132;
static u64 (*const ringbuf_query)(void *ring, u64 what) = (void *)134;
static void *(*const task_pt_regs)(struct task_struct *task) = (void *)175;

/* A field of the kernel's, 0 where it cannot be read. */
#define READ(pointer, field) ({ \
	typeof((pointer)->field) got__ = 0; \
	probe_read_kernel(&got__, sizeof(got__), __builtin_preserve_access_index(&(pointer)->field)); \
	got__; \
})

/* Whether the running kernel has a field of this type. */
#define EXISTS(type, field) __builtin_preserve_field_info(((type *)0)->field, 2)

/* The running kernel's value of a member of an enumeration. */
#define VALUE(type, member) __builtin_preserve_enum_value(*(type *)member, 1)

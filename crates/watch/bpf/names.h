/* SPDX-License-Identifier: MIT OR GPL-2.0
 * Which name a call looked up, as a hash: the same for the same path from the same directory. The path itself is not recorded.
 * Part of observer.bpf.c. */

enum {
	NAME_WORDS = PATH_BYTES / 8,
	/* ENOENT. */
	NO_SUCH_NAME = 2,
};

/* A hash of the directory that a relative path begins at. A call that found a name, or found that there is none, had such a directory. */
static inline_always u64 base_of(u64 descriptor)
{
	struct dentry *base;
	/* AT_FDCWD, or a call without a descriptor. */
	if ((s32)descriptor < 0) {
		struct fs_struct *fs = READ(get_current_task(), fs);
		base = READ(fs, pwd.dentry);
	} else {
		struct file *file = (struct file *)description_of(descriptor);
		base = READ(file, f_path.dentry);
	}
	struct inode *inode = READ(base, d_inode);
	struct super_block *super = READ(inode, i_sb);
	return mix(READ(inode, i_ino)) ^ ((u64)READ(super, s_dev) << 32 | READ(inode, i_generation));
}

/* The name that a call looked up; 0: it looked up none, or that cannot be read. */
__attribute__((noinline)) u64 name_looked_up(u64 regs, u32 number)
{
	u32 zero = 0;
	struct machine *here = map_lookup(&machine, &zero);
	struct registers *held = map_lookup(&registers, &zero);
	struct shape *shape = map_lookup(&shapes, &number);
	struct path_text *path = map_lookup(&scratch, &zero);
	if (!here || !held || !shape || !path || shape->ends[0].offset == NO_ARGUMENT)
		return 0;
	struct call call = { .regs = regs, .registers = held, .here = here };
	u64 *words = path->words;
	s64 got = probe_read_user_str(words, PATH_BYTES, (const void *)argument(&call, shape->ends[0].offset));
	/* With the final 0. An empty path is the descriptor's own file; of one that is too long the end is not known. */
	if (got <= 1 || got >= PATH_BYTES)
		return 0;
	u32 length = got - 1;
	u64 hash = 0;
	if ((words[0] & 0xff) != '/') {
		u64 directory = shape->ends[0].descriptor == NO_ARGUMENT ? ~0ULL : argument(&call, shape->ends[0].descriptor);
		hash = base_of(directory);
	}
	for (u32 i = 0; i < NAME_WORDS; i++) {
		u32 rest = length - i * 8;
		u64 word = words[i];
		if (rest < 8)
			word &= (1ULL << rest * 8) - 1;
		hash = mix(hash ^ word);
		if (rest <= 8)
			break;
	}
	return hash;
}

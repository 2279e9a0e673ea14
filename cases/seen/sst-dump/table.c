#define _DEFAULT_SOURCE
#include "table.h"
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define HEADER 64

int table_open(struct table *t, const char *path, enum access how)
{
	struct stat st;
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -1;
	if (fstat(fd, &st) < 0 || st.st_size < HEADER) {
		close(fd);
		return -1;
	}
	t->size = st.st_size;
	t->base = mmap(NULL, t->size, PROT_READ, MAP_SHARED, fd, 0);
	close(fd);
	if (t->base == MAP_FAILED)
		return -1;
	/* point lookups touch a page here and there: read-ahead would only crowd out the cache */
	madvise((void *)t->base, t->size, how == ACCESS_SCAN ? MADV_SEQUENTIAL : MADV_RANDOM);
	if (memcmp(t->base, "SST2", 4) != 0) {
		table_close(t);
		return -1;
	}
	memcpy(&t->entries, t->base + 4, 8);
	memcpy(&t->body, t->base + 12, 8);
	return t->body + HEADER > t->size ? -1 : 0;
}

void table_close(struct table *t)
{
	munmap((void *)t->base, t->size);
	t->base = NULL;
}

int table_next(const struct table *t, uint64_t *pos, struct entry *e)
{
	const unsigned char *p = t->base + HEADER + *pos;
	uint16_t klen;
	if (*pos >= t->body)
		return 0;
	if (t->body - *pos < 11)
		return -1;
	memcpy(&klen, p, 2);
	memcpy(&e->vlen, p + 2, 4);
	memcpy(&e->expires, p + 6, 4);
	e->tombstone = p[10];
	e->klen = klen;
	if (t->body - *pos < 11ull + klen + e->vlen)
		return -1;
	e->key = p + 11;
	e->value = p + 11 + klen;
	*pos += 11ull + klen + e->vlen;
	return 1;
}

#ifndef TABLE_H
#define TABLE_H
#include <stddef.h>
#include <stdint.h>

enum access { ACCESS_POINT, ACCESS_SCAN };

struct table {
	const unsigned char *base;
	size_t size;
	uint64_t entries, body;
};

struct entry {
	const unsigned char *key, *value;
	uint32_t klen, vlen, expires;
	int tombstone;
};

int table_open(struct table *t, const char *path, enum access how);
void table_close(struct table *t);
/* Decodes the entry at *pos and moves *pos on; 0 at the end, -1 if damaged. */
int table_next(const struct table *t, uint64_t *pos, struct entry *e);
#endif

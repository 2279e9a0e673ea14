/* sst_dump: what is in a table? Live, expired and deleted entries, value sizes, checksum. */
#include "table.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NOW 1705000000u

static uint64_t mix(uint64_t h, const unsigned char *p, size_t n)
{
	uint64_t w;
	for (; n >= 8; p += 8, n -= 8) {
		memcpy(&w, p, 8);
		h = (h ^ w) * 0x9E3779B97F4A7C15ull;
		h ^= h >> 29;
	}
	for (; n; p++, n--)
		h = (h ^ *p) * 0x100000001B3ull;
	return h;
}

int main(int argc, char **argv)
{
	enum access how = ACCESS_POINT;
	struct table t;
	struct entry e;
	uint64_t pos = 0, live = 0, expired = 0, deleted = 0, live_bytes = 0, waste = 0, h = 14695981039346656037ull;
	uint64_t hist[33] = { 0 }, unordered = 0;
	unsigned char last[64] = { 0 };
	uint32_t lastlen = 0;
	int a = 1, r;

	if (a < argc && strcmp(argv[a], "--scan") == 0) {
		how = ACCESS_SCAN;
		a++;
	}
	if (a >= argc || table_open(&t, argv[a], how) < 0) {
		fprintf(stderr, "sst_dump: cannot open table\n");
		return 1;
	}
	while ((r = table_next(&t, &pos, &e)) > 0) {
		uint32_t n = e.klen < lastlen ? e.klen : lastlen;
		if (memcmp(last, e.key, n) > 0)
			unordered++;
		lastlen = e.klen < sizeof last ? e.klen : sizeof last;
		memcpy(last, e.key, lastlen);
		h = mix(mix(h, e.key, e.klen), e.value, e.vlen);
		if (e.tombstone) {
			deleted++;
			waste += e.klen;
		} else if (e.expires && e.expires < NOW) {
			expired++;
			waste += e.klen + e.vlen;
		} else {
			live++;
			live_bytes += e.klen + e.vlen;
			hist[e.vlen ? 32 - __builtin_clz(e.vlen) : 0]++;
		}
	}
	printf("%llu entries: %llu live, %llu expired, %llu deleted%s\n", (unsigned long long)t.entries,
	       (unsigned long long)live, (unsigned long long)expired, (unsigned long long)deleted, r < 0 ? " (DAMAGED)" : "");
	printf("live bytes %llu, compaction would free %llu, out of order %llu, checksum %016llx\n",
	       (unsigned long long)live_bytes, (unsigned long long)waste, (unsigned long long)unordered, (unsigned long long)h);
	for (int i = 0; i < 33; i++)
		if (hist[i])
			printf("value < %-6llu %llu\n", 1ull << i, (unsigned long long)hist[i]);
	table_close(&t);
	return r < 0;
}

/* compact: merge sorted runs of a key-value store into one; the newest version of a key wins. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

#define BUF (1u << 20)
#define BLOCK (32u << 10)
#define DELETED 0xffff
#define MAXREC (10 + 0xfffe)

struct run {
	int fd, eof;
	unsigned char *buf;
	size_t have, pos;
	/* current record */
	const unsigned char *rec;
	size_t len;
	uint32_t key, seq;
	uint16_t vlen;
	uint64_t records;
};

static void die(const char *what)
{
	fprintf(stderr, "compact: %s: %s\n", what, strerror(errno));
	exit(1);
}

static uint32_t be32(const unsigned char *p)
{
	return (uint32_t)p[0] << 24 | p[1] << 16 | p[2] << 8 | p[3];
}

static void fill(struct run *r)
{
	memmove(r->buf, r->buf + r->pos, r->have - r->pos);
	r->have -= r->pos;
	r->pos = 0;
	while (!r->eof && r->have < BUF) {
		ssize_t n = read(r->fd, r->buf + r->have, BUF + MAXREC - r->have);
		if (n < 0)
			die("read");
		if (n == 0)
			r->eof = 1;
		r->have += n;
	}
}

static int advance(struct run *r)
{
	if (r->have - r->pos < MAXREC && !r->eof)
		fill(r);
	if (r->pos == r->have)
		return r->rec = NULL, 0;
	r->rec = r->buf + r->pos;
	r->key = be32(r->rec);
	r->seq = be32(r->rec + 4);
	r->vlen = r->rec[8] << 8 | r->rec[9];
	r->len = 10 + (r->vlen == DELETED ? 0 : r->vlen);
	r->pos += r->len;
	r->records++;
	return 1;
}

struct out {
	int fd;
	unsigned char *buf, *raw;	/* raw: the open block, not yet compressed */
	size_t used, rawlen;
	uint64_t written, blocks, rawbytes;
	uint32_t crcs;
	z_stream z;
};

static void flush_out(struct out *o)
{
	for (size_t done = 0; done < o->used;) {
		ssize_t w = write(o->fd, o->buf + done, o->used - done);
		if (w < 0)
			die("write");
		done += w;
	}
	o->written += o->used;
	o->used = 0;
}

/* block: [u32 raw length][u32 packed length][packed][u32 crc of the packed bytes] */
static void end_block(struct out *o)
{
	unsigned char *h = o->buf + o->used;
	uint32_t len[2], packed, c;
	deflateReset(&o->z);
	o->z.next_in = o->raw;
	o->z.avail_in = o->rawlen;
	o->z.next_out = h + 8;
	o->z.avail_out = compressBound(BLOCK + MAXREC);
	if (deflate(&o->z, Z_FINISH) != Z_STREAM_END)
		die("compress");
	packed = o->z.total_out;
	len[0] = o->rawlen;
	len[1] = packed;
	memcpy(h, len, 8);
	c = crc32(0, h + 8, packed);
	memcpy(h + 8 + packed, &c, 4);
	o->used += packed + 12;
	o->crcs = crc32(o->crcs, (unsigned char *)&c, 4);
	o->rawbytes += o->rawlen;
	o->rawlen = 0;
	o->blocks++;
	if (o->used >= BUF)
		flush_out(o);
}

int main(int argc, char **argv)
{
	struct run runs[16] = { 0 };
	struct out o = { 0 };
	uint64_t kept = 0, deleted = 0, shadowed = 0;
	char tmp[4096], dir[4096];
	int n = argc - 2;

	if (n < 1 || n > 16)
		return fprintf(stderr, "usage: compact OUT RUN...\n"), 2;
	for (int i = 0; i < n; i++) {
		if ((runs[i].fd = open(argv[i + 2], O_RDONLY | O_CLOEXEC)) < 0)
			die(argv[i + 2]);
		posix_fadvise(runs[i].fd, 0, 0, POSIX_FADV_SEQUENTIAL);
		runs[i].buf = malloc(BUF + MAXREC);
		advance(&runs[i]);
	}
	snprintf(tmp, sizeof tmp, "%s.tmp", argv[1]);
	if ((o.fd = open(tmp, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644)) < 0)
		die(tmp);
	o.buf = malloc(BUF + compressBound(BLOCK + MAXREC) + 12);
	o.raw = malloc(BLOCK + MAXREC);
	if (deflateInit(&o.z, Z_BEST_SPEED) != Z_OK)
		die("deflate");
	for (;;) {
		struct run *best = NULL;
		for (int i = 0; i < n; i++)
			if (runs[i].rec && (!best || runs[i].key < best->key || (runs[i].key == best->key && runs[i].seq > best->seq)))
				best = &runs[i];
		if (!best)
			break;
		uint32_t key = best->key;
		if (best->vlen == DELETED) {
			deleted++;
		} else {
			memcpy(o.raw + o.rawlen, best->rec, best->len);
			o.rawlen += best->len;
			kept++;
			if (o.rawlen >= BLOCK)
				end_block(&o);
		}
		for (int i = 0; i < n; i++)
			if (runs[i].rec && runs[i].key == key) {
				shadowed += &runs[i] != best;
				advance(&runs[i]);
			}
	}
	if (o.rawlen)
		end_block(&o);
	flush_out(&o);
	/* the new table must be whole on disk before it takes the old runs' place */
	if (fdatasync(o.fd) < 0 || close(o.fd) < 0 || rename(tmp, argv[1]) < 0)
		die(argv[1]);
	snprintf(dir, sizeof dir, "%s", argv[1]);
	int dfd = open(dirname(dir), O_RDONLY | O_DIRECTORY);
	if (dfd < 0 || fsync(dfd) < 0)
		die("directory");
	for (int i = 0; i < n; i++)
		printf("run %d: %llu records\n", i, (unsigned long long)runs[i].records);
	printf("kept %llu, dropped %llu deleted and %llu old versions; %llu bytes packed to %llu in %llu blocks, crc %08x\n",
	       (unsigned long long)kept, (unsigned long long)deleted, (unsigned long long)shadowed,
	       (unsigned long long)o.rawbytes, (unsigned long long)o.written, (unsigned long long)o.blocks, o.crcs);
	return 0;
}

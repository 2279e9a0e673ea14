#define _GNU_SOURCE
#include "post.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PER_BLOCK 4096

struct master {
    /* by record */
    FILE *file;
    struct meter one;
    uint32_t slot;
    /* by block */
    int fd;
    struct meter *block;
    uint32_t first, count;
    int dirty;
};

struct master *master_open(const char *path, int blocks)
{
    struct master *m = calloc(1, sizeof *m);
    m->fd = -1;
    if (blocks) {
        m->fd = open(path, O_RDWR);
        m->block = malloc(PER_BLOCK * sizeof *m->block);
        if (m->fd < 0) { free(m->block); free(m); return NULL; }
    } else {
        m->file = fopen(path, "r+b");
        if (!m->file) { free(m); return NULL; }
    }
    return m;
}

static int flush_block(struct master *m)
{
    size_t bytes = m->count * sizeof(struct meter);
    if (m->dirty && pwrite(m->fd, m->block, bytes, (off_t)m->first * sizeof(struct meter)) != (ssize_t)bytes)
        return -1;
    m->dirty = 0;
    return 0;
}

struct meter *master_seek(struct master *m, uint32_t slot)
{
    m->slot = slot;
    if (m->file) {
        if (fseeko(m->file, (off_t)slot * sizeof m->one, SEEK_SET) != 0)
            return NULL;
        return fread(&m->one, sizeof m->one, 1, m->file) == 1 ? &m->one : NULL;
    }
    if (slot < m->first || slot >= m->first + m->count) {
        if (flush_block(m) != 0)
            return NULL;
        m->first = slot - slot % PER_BLOCK;
        ssize_t got = pread(m->fd, m->block, PER_BLOCK * sizeof *m->block, (off_t)m->first * sizeof(struct meter));
        m->count = got > 0 ? (uint32_t)(got / sizeof(struct meter)) : 0;
        if (slot >= m->first + m->count)
            return NULL;
    }
    return &m->block[slot - m->first];
}

int master_put(struct master *m)
{
    if (m->file) {
        if (fseeko(m->file, (off_t)m->slot * sizeof m->one, SEEK_SET) != 0)
            return -1;
        return fwrite(&m->one, sizeof m->one, 1, m->file) == 1 ? 0 : -1;
    }
    m->dirty = 1;
    return 0;
}

int master_close(struct master *m)
{
    int bad = m->file ? fclose(m->file) : flush_block(m) | close(m->fd);
    free(m->block);
    free(m);
    return bad;
}

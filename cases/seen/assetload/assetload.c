/* assetload: loads everything that a level refers to, as the game does at its start.
 * Level files write paths in lower case; the disc of 1998 does not.
 *
 * usage: assetload [-i] GAME_DIR LEVEL
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

static int use_index;

/* ---- an index of the folders already listed (with -i) */
struct listing {
    char *dir;
    char **names;
    size_t count;
    struct listing *next;
};
static struct listing *listings;

static int by_name(const void *a, const void *b) { return strcasecmp(*(char *const *)a, *(char *const *)b); }

static struct listing *list(const char *dir)
{
    for (struct listing *l = listings; l; l = l->next)
        if (strcmp(l->dir, dir) == 0)
            return l;
    DIR *d = opendir(dir);
    if (!d)
        return NULL;
    struct listing *l = calloc(1, sizeof *l);
    size_t room = 0;
    struct dirent *e;
    l->dir = strdup(dir);
    while ((e = readdir(d))) {
        if (l->count == room)
            l->names = realloc(l->names, (room = room ? 2 * room : 64) * sizeof *l->names);
        l->names[l->count++] = strdup(e->d_name);
    }
    closedir(d);
    qsort(l->names, l->count, sizeof *l->names, by_name);
    l->next = listings;
    listings = l;
    return l;
}

/* Finds the entry of dir that is called name in any case; 0 if there is none. */
static int find_entry(const char *dir, const char *name, char *found, size_t size)
{
    if (use_index) {
        struct listing *l = list(dir);
        if (!l)
            return 0;
        char **hit = bsearch(&name, l->names, l->count, sizeof *l->names, by_name);
        if (hit)
            snprintf(found, size, "%s", *hit);
        return hit != NULL;
    }
    DIR *d = opendir(dir);
    if (!d)
        return 0;
    struct dirent *e;
    int hit = 0;
    while (!hit && (e = readdir(d)))
        if (strcasecmp(e->d_name, name) == 0) {
            snprintf(found, size, "%s", e->d_name);
            hit = 1;
        }
    closedir(d);
    return hit;
}

/* Turns a path of the level into one that exists below root. */
static int resolve(const char *root, const char *path, char *out, size_t size)
{
    char copy[512], found[256], *save = NULL;
    snprintf(copy, sizeof copy, "%s", path);
    snprintf(out, size, "%s", root);
    for (char *part = strtok_r(copy, "/\\", &save); part; part = strtok_r(NULL, "/\\", &save)) {
        if (!find_entry(out, part, found, sizeof found))
            return 0;
        size_t n = strlen(out);
        snprintf(out + n, size - n, "/%s", found);
    }
    return 1;
}

struct asset {
    char path[512];
    int width, height, users;
    uint32_t hash;
    struct asset *next;
};
static struct asset *table[1024];

static uint32_t fnv(const unsigned char *p, size_t n)
{
    uint32_t h = 2166136261u;
    while (n--)
        h = (h ^ *p++) * 16777619u;
    return h;
}

static struct asset *load(const char *path)
{
    uint32_t slot = fnv((const unsigned char *)path, strlen(path)) % 1024;
    for (struct asset *a = table[slot]; a; a = a->next)
        if (strcmp(a->path, path) == 0) {
            a->users++;
            return a;
        }
    unsigned char buf[4 + 64 * 64];
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return NULL;
    ssize_t n = read(fd, buf, sizeof buf);
    close(fd);
    if (n < 4)
        return NULL;
    struct asset *a = calloc(1, sizeof *a);
    snprintf(a->path, sizeof a->path, "%s", path);
    a->width = buf[0] | buf[1] << 8;
    a->height = buf[2] | buf[3] << 8;
    a->hash = fnv(buf + 4, n - 4);
    a->users = 1;
    a->next = table[slot];
    return table[slot] = a;
}

int main(int argc, char **argv)
{
    if (argc > 1 && strcmp(argv[1], "-i") == 0) {
        use_index = 1;
        argv++;
        argc--;
    }
    if (argc != 3) {
        fprintf(stderr, "usage: assetload [-i] GAME_DIR LEVEL\n");
        return 2;
    }
    FILE *level = fopen(argv[2], "r");
    if (!level) {
        fprintf(stderr, "assetload: %s: %s\n", argv[2], strerror(errno));
        return 1;
    }
    char name[256], path[512];
    int id, x, y, z, entities = 0, missing = 0, box[4] = {9999, 9999, -9999, -9999};
    uint32_t sum = 0;
    while (fscanf(level, "entity %d %255s %d %d %d\n", &id, name, &x, &y, &z) == 5) {
        struct asset *a = resolve(argv[1], name, path, sizeof path) ? load(path) : NULL;
        if (!a) {
            missing++;
            continue;
        }
        entities++;
        sum = sum * 31 + (a->hash ^ (uint32_t)id);
        if (x < box[0]) box[0] = x;
        if (y < box[1]) box[1] = y;
        if (x > box[2]) box[2] = x;
        if (y > box[3]) box[3] = y;
    }
    fclose(level);
    int assets = 0, shared = 0;
    long texels = 0;
    for (int i = 0; i < 1024; i++)
        for (struct asset *a = table[i]; a; a = a->next) {
            assets++;
            shared += a->users > 1;
            texels += (long)a->width * a->height;
        }
    printf("%d entities, %d missing\n%d assets, %d shared, %ld bytes\n", entities, missing, assets, shared, texels);
    printf("bounds %d,%d to %d,%d\nchecksum %08x\n", box[0], box[1], box[2], box[3], sum);
    return 0;
}

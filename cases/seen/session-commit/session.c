/* Commit log of a session store. commit() returns when the record is durable. */
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define THREADS 8
#define COMMITS 250
#define RECORD 120

static int fd, group;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t synced = PTHREAD_COND_INITIALIZER;
static char queue[THREADS * RECORD];
static size_t queued;
static long appended, durable; /* records handed in, records on the disk */
static int syncing;

static void die(const char *what)
{
    perror(what);
    exit(1);
}

static void to_disk(const char *p, size_t n)
{
    if (write(fd, p, n) != (ssize_t)n)
        die("write");
    if (fdatasync(fd))
        die("fdatasync");
}

static void commit_one(const char *record)
{
    pthread_mutex_lock(&lock);
    to_disk(record, RECORD);
    pthread_mutex_unlock(&lock);
}

static void commit_grouped(const char *record)
{
    pthread_mutex_lock(&lock);
    memcpy(queue + queued, record, RECORD);
    queued += RECORD;
    long mine = ++appended;
    while (durable < mine) {
        if (syncing) {
            pthread_cond_wait(&synced, &lock);
            continue;
        }
        char batch[sizeof queue];
        size_t n = queued;
        long upto = appended;
        memcpy(batch, queue, n);
        queued = 0;
        syncing = 1;
        pthread_mutex_unlock(&lock);
        to_disk(batch, n);
        pthread_mutex_lock(&lock);
        durable = upto;
        syncing = 0;
        pthread_cond_broadcast(&synced);
    }
    pthread_mutex_unlock(&lock);
}

static void *client(void *arg)
{
    long id = (long)arg;
    for (int i = 0; i < COMMITS; i++) {
        char record[RECORD + 1];
        int n = snprintf(record, sizeof record, "session=%ld-%05d state=", id, i);
        memset(record + n, 'a' + i % 26, RECORD - n);
        record[RECORD - 1] = '\n';
        if (group)
            commit_grouped(record);
        else
            commit_one(record);
    }
    return NULL;
}

int main(int argc, char **argv)
{
    if (argc != 3)
        return 2;
    group = !strcmp(argv[1], "repaired");
    char path[4096];
    snprintf(path, sizeof path, "%s/session.log", argv[2]);
    fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_APPEND, 0644);
    if (fd < 0)
        die(path);
    pthread_t t[THREADS];
    for (long i = 0; i < THREADS; i++)
        pthread_create(&t[i], NULL, client, (void *)i);
    for (int i = 0; i < THREADS; i++)
        pthread_join(t[i], NULL);

    /* The order of the records is free, their sum is not. */
    static char log[THREADS * COMMITS * RECORD + 1];
    ssize_t n = pread(fd, log, sizeof log, 0);
    unsigned long long sum = 0;
    for (ssize_t at = 0; at < n; at += RECORD) {
        unsigned long long h = 0;
        for (int i = 0; i < RECORD; i++)
            h = h * 31 + (unsigned char)log[at + i];
        sum += h;
    }
    printf("%ld commits, sum %016llx\n", (long)n / RECORD, sum);
    return 0;
}

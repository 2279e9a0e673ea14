/* Stores the day's end balances in the accounts file, a record each. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define RECORD 256
#define BATCH 128

struct balance {
    uint64_t account;
    int64_t cents;
};

static void store(int fd, const struct balance *b)
{
    char record[RECORD];
    memset(record, ' ', sizeof record);
    int n = snprintf(record, sizeof record, "ACCT%010llu EUR %lld.%02d", (unsigned long long)b->account,
                     (long long)(b->cents / 100), abs((int)(b->cents % 100)));
    record[n] = ' ';
    record[RECORD - 1] = '\n';
    if (pwrite(fd, record, sizeof record, b->account * RECORD) != RECORD) {
        perror("pwrite");
        exit(1);
    }
}

int main(int argc, char **argv)
{
    if (argc != 3)
        return 2;
    int repaired = !strcmp(argv[1], "repaired");
    char path[4096];
    snprintf(path, sizeof path, "%s/balances.bin", argv[2]);
    FILE *in = fopen(path, "rb");
    snprintf(path, sizeof path, "%s/accounts.dat", argv[2]);
    int fd = open(path, O_RDWR);
    if (!in || fd < 0) {
        perror(path);
        return 1;
    }
    struct balance batch[BATCH];
    long count = 0, sum = 0;
    size_t n;
    while ((n = fread(batch, sizeof batch[0], BATCH, in)) > 0) {
        if (repaired)    /* records are smaller than pages: have the pages read in ahead */
            for (size_t i = 0; i < n; i++)
                posix_fadvise(fd, batch[i].account * RECORD, RECORD, POSIX_FADV_WILLNEED);
        for (size_t i = 0; i < n; i++) {
            store(fd, &batch[i]);
            sum += batch[i].cents;
        }
        count += n;
    }
    if (close(fd)) {
        perror("close");
        return 1;
    }
    printf("%ld balances, %ld cents\n", count, sum);
    return 0;
}

/* master file of the billing system: fixed records, ordered by meter number */
#ifndef POST_H
#define POST_H
#include <stdint.h>

struct meter {
    uint32_t number;
    uint32_t period;     /* last billed period, yyyymm */
    uint32_t previous;   /* counter at the start of the period */
    uint32_t current;    /* counter at its end */
    uint32_t used;       /* units of the period */
    uint32_t peak;       /* largest hourly value */
    uint32_t cents;      /* what is billed */
    uint16_t tariff;
    uint16_t flags;
    char place[16];
};

struct reading {
    uint32_t number;
    uint32_t total;
    uint32_t peak;
    uint32_t night;      /* units between 22 and 6 */
    uint32_t hours;
};

/* where meters come from and go to */
struct master;
struct master *master_open(const char *path, int blocks);
struct meter *master_seek(struct master *m, uint32_t slot);  /* NULL at the end */
int master_put(struct master *m);                            /* the one last sought */
int master_close(struct master *m);

#endif

/* posts a month's interval readings to the master file of the meters; can be run again for the same month */
#include "post.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct totals { unsigned long posted, missing, odd; unsigned long long units, cents; };

static const struct { unsigned step, low, high, night; } TARIFF[4] = {
    {400, 31, 36, 22}, {900, 29, 33, 21}, {2500, 26, 30, 19}, {0, 24, 24, 24},
};

/* "number;v v v v ..." with one value an hour */
static int parse(const char *line, struct reading *r)
{
    char *p;
    memset(r, 0, sizeof *r);
    r->number = (uint32_t)strtoul(line, &p, 10);
    if (*p++ != ';')
        return -1;
    while (*p && *p != '\n') {
        uint32_t v = (uint32_t)strtoul(p, &p, 10);
        unsigned hour = r->hours++ % 24;
        r->total += v;
        if (v > r->peak)
            r->peak = v;
        if (hour >= 22 || hour < 6)
            r->night += v;
        while (*p == ' ')
            p++;
    }
    return r->hours ? 0 : -1;
}

static void bill(struct meter *m, const struct reading *r, uint32_t period)
{
    unsigned t = m->tariff & 3;
    uint32_t day = r->total - r->night, low = day;
    if (TARIFF[t].step && day > TARIFF[t].step)
        low = TARIFF[t].step;
    m->used = r->total;
    m->current = m->previous + r->total;
    m->peak = r->peak;
    m->cents = low * TARIFF[t].low + (day - low) * TARIFF[t].high + r->night * TARIFF[t].night;
    m->period = period;
    m->flags = (uint16_t)((m->flags & ~1u) | (r->peak > 96 ? 1u : 0u));
}

int main(int argc, char **argv)
{
    if (argc != 6) {
        fprintf(stderr, "usage: post record|block MASTER READINGS EXCEPTIONS PERIOD\n");
        return 2;
    }
    struct master *m = master_open(argv[2], strcmp(argv[1], "block") == 0);
    FILE *in = fopen(argv[3], "r"), *out = fopen(argv[4], "w");
    if (!m || !in || !out) { perror("post"); return 1; }
    uint32_t period = (uint32_t)atoi(argv[5]), slot = 0;
    struct totals sum = {0};
    unsigned long long mix = 1469598103934665603ull;
    char *line = NULL;
    size_t room = 0;
    while (getline(&line, &room, in) > 0) {
        struct reading r;
        if (parse(line, &r) != 0) { sum.odd++; continue; }
        struct meter *at;
        /* both files are in order of the number */
        while ((at = master_seek(m, slot)) && at->number < r.number)
            slot++;
        if (!at || at->number != r.number) {
            sum.missing++;
            fprintf(out, "%u not in the master file\n", r.number);
            continue;
        }
        bill(at, &r, period);
        if (at->flags & 1)
            fprintf(out, "%u peak %u at %.16s\n", r.number, r.peak, at->place);
        sum.posted++;
        sum.units += at->used;
        sum.cents += at->cents;
        mix = (mix ^ at->cents ^ ((unsigned long long)at->current << 20)) * 1099511628211ull;
        if (master_put(m) != 0) { perror("post: put"); return 1; }
    }
    free(line);
    fclose(in);
    if (fclose(out) != 0 || master_close(m) != 0) { perror("post: close"); return 1; }
    printf("posted %lu missing %lu odd %lu units %llu cents %llu mark %016llx\n",
           sum.posted, sum.missing, sum.odd, sum.units, sum.cents, mix);
    return 0;
}

/* quakepick: short-term / long-term average trigger over part of a day's archive. */
#include "archive.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define STATIONS 8

struct picker {
    double sta, lta;
    int on;
    long picks;
    char name[6];
};

int main(int argc, char **argv)
{
    if (argc != 4) {
        fprintf(stderr, "usage: quakepick ARCHIVE FROM TO   (seconds since midnight)\n");
        return 2;
    }
    struct archive a;
    if (archive_open(&a, argv[1]) != 0)
        return 1;
    size_t from = archive_find(&a, atof(argv[2])), to = archive_find(&a, atof(argv[3]));
    struct picker p[STATIONS];
    memset(p, 0, sizeof p);
    for (int i = 0; i < STATIONS; i++)
        p[i].lta = 40;
    double loudest = 0, at = 0;
    for (size_t r = from; r < to; r++) {
        const struct record *rec = &a.rec[r];
        struct picker *k = &p[rec->channel % STATIONS];
        if (!k->name[0])
            memcpy(k->name, rec->station, 5);
        for (int i = 0; i < rec->nsamples; i++) {
            double v = fabs((double)rec->sample[i]);
            k->sta += (v - k->sta) / 50;
            k->lta += (v - k->lta) / 5000;
            double ratio = k->sta / (k->lta + 1);
            if (!k->on && ratio > 6) {
                k->on = 1;
                k->picks++;
            } else if (k->on && ratio < 1.5)
                k->on = 0;
            if (k->sta > loudest) {
                loudest = k->sta;
                at = rec->start + i * 0.01;
            }
        }
    }
    printf("%zu records", to - from);
    for (int i = 0; i < STATIONS; i++)
        printf(", %s%ld", p[i].name, p[i].picks);
    printf("; loudest %.2f at %.2f s\n", loudest, at);
    archive_close(&a);
    return 0;
}

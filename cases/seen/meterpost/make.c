/* makes the master file and the readings of a month */
#include "post.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static uint64_t state = 88172645463325252ull;
static uint32_t next(uint32_t n)
{
    state ^= state << 13; state ^= state >> 7; state ^= state << 17;
    return (uint32_t)((state >> 11) % n);
}

int main(int argc, char **argv)
{
    if (argc != 4) return 2;
    FILE *master = fopen(argv[1], "wb"), *text = fopen(argv[2], "w");
    uint32_t meters = (uint32_t)atoi(argv[3]), number = 10000;
    for (uint32_t i = 0; i < meters; i++) {
        struct meter m;
        memset(&m, 0, sizeof m);
        m.number = number += 1 + next(9);
        m.previous = 1000 + next(90000);
        m.tariff = (uint16_t)next(4);
        snprintf(m.place, sizeof m.place, "%c%c-%05u/%u", 'A' + next(26), 'A' + next(26), next(99999), next(40));
        fwrite(&m, sizeof m, 1, master);
        if (next(50) == 0)
            continue;   /* no reading this month */
        fprintf(text, "%u;", next(900) == 0 ? number - 1 : number);
        uint32_t level = 4 + next(60);
        for (int h = 0; h < 72; h++)
            fprintf(text, h ? " %u" : "%u", level / 2 + next(level));
        fputc('\n', text);
    }
    fflush(master); fsync(fileno(master)); fclose(master);
    fflush(text); fsync(fileno(text)); fclose(text);
    return 0;
}

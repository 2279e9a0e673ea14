/* Time series at stations out of a file of grids (time, latitude, longitude). */
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define STEPS 360
#define CELLS (400 * 400)
#define MAX_STATIONS 1000

static char name[MAX_STATIONS][16];
static int cell[MAX_STATIONS], stations;
static float series[MAX_STATIONS][STEPS];

static void die(const char *what)
{
    perror(what);
    exit(1);
}

static void read_stations(const char *dir)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/stations.txt", dir);
    FILE *f = fopen(path, "r");
    if (!f)
        die(path);
    while (stations < MAX_STATIONS && fscanf(f, "%15s %d", name[stations], &cell[stations]) == 2)
        stations++;
    fclose(f);
}

static void get(int fd, void *to, size_t n, off_t at)
{
    if (pread(fd, to, n, at) != (ssize_t)n)
        die("pread");
}

static void station_by_station(int fd)
{
    for (int s = 0; s < stations; s++)
        for (int t = 0; t < STEPS; t++)
            get(fd, &series[s][t], 4, ((off_t)t * CELLS + cell[s]) * 4);
}

static void grid_by_grid(int fd)
{
    float *grid = malloc(CELLS * 4);
    for (int t = 0; t < STEPS; t++) {
        get(fd, grid, CELLS * 4, (off_t)t * CELLS * 4);
        for (int s = 0; s < stations; s++)
            series[s][t] = grid[cell[s]];
    }
    free(grid);
}

int main(int argc, char **argv)
{
    if (argc != 3)
        return 2;
    char path[4096];
    read_stations(argv[2]);
    snprintf(path, sizeof path, "%s/climate.grid", argv[2]);
    int fd = open(path, O_RDONLY);
    if (fd < 0)
        die(path);
    if (!strcmp(argv[1], "repaired"))
        grid_by_grid(fd);
    else
        station_by_station(fd);
    double all = 0;
    int warmest = 0;
    double best = -1e9;
    for (int s = 0; s < stations; s++) {
        double sum = 0;
        for (int t = 0; t < STEPS; t++)
            sum += series[s][t];
        all += sum;
        if (sum > best)
            best = sum, warmest = s;
    }
    printf("%d stations, mean %.4f, warmest %s\n", stations, all / stations / STEPS, name[warmest]);
    return 0;
}

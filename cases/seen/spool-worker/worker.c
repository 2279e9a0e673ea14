/* A spool folder: clients put job files in, the worker takes the oldest. */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char spool[4096];
static unsigned long long check;
static long done;

static void die(const char *what)
{
    perror(what);
    exit(1);
}

/* The client's side: hands in all jobs. */
static void submit_all(const char *dir)
{
    char path[4200], line[256];
    snprintf(path, sizeof path, "%s/jobs.txt", dir);
    FILE *jobs = fopen(path, "r");
    if (!jobs)
        die(path);
    for (long n = 0; fgets(line, sizeof line, jobs); n++) {
        snprintf(path, sizeof path, "%s/job-%08ld.txt", spool, n);
        FILE *f = fopen(path, "w");
        if (!f || fputs(line, f) == EOF || fclose(f))
            die(path);
    }
    fclose(jobs);
}

static void work_off(const char *name)
{
    char path[4500], line[256];
    snprintf(path, sizeof path, "%s/%s", spool, name);
    FILE *f = fopen(path, "r");
    if (!f || !fgets(line, sizeof line, f))
        die(path);
    fclose(f);
    for (char *p = line; *p; p++)
        check = check * 31 + (unsigned char)*p;
    if (unlink(path))
        die(path);
    done++;
}

/* The oldest job; 0 when the folder is empty. */
static int next_job(char *oldest, size_t size)
{
    DIR *d = opendir(spool);
    struct dirent *e;
    if (!d)
        die(spool);
    oldest[0] = 0;
    while ((e = readdir(d)))
        if (!strncmp(e->d_name, "job-", 4) && (!oldest[0] || strcmp(e->d_name, oldest) < 0))
            snprintf(oldest, size, "%s", e->d_name);
    closedir(d);
    return oldest[0] != 0;
}

static int is_job(const struct dirent *e)
{
    return !strncmp(e->d_name, "job-", 4);
}

int main(int argc, char **argv)
{
    if (argc != 3)
        return 2;
    snprintf(spool, sizeof spool, "%s/spool", argv[2]);
    if (mkdir(spool, 0755))
        die(spool);
    submit_all(argv[2]);
    if (!strcmp(argv[1], "repaired")) {
        struct dirent **list;
        int n;
        while ((n = scandir(spool, &list, is_job, alphasort)) > 0)
            for (int i = 0; i < n; i++)
                work_off(list[i]->d_name);
    } else {
        char name[256];
        while (next_job(name, sizeof name))
            work_off(name);
    }
    printf("%ld jobs, check %016llx\n", done, check);
    return 0;
}

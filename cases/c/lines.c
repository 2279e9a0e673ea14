/* Writes N lines to a file with stdio: `none` without a buffer, so that each line is a call, or `full`. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int main(int argc, char **argv)
{
	if (argc != 4)
		return 2;
	FILE *out = fopen(argv[1], "w");
	long lines = atol(argv[2]);
	if (!out)
		return 1;
	if (!strcmp(argv[3], "none"))
		setvbuf(out, NULL, _IONBF, 0);
	for (long i = 0; i < lines; i++)
		if (fputs("a measurement of some kind: 12345\n", out) < 0)
			return 1;
	if (fclose(out))
		return 1;
	printf("%ld\n", lines);
	return 0;
}

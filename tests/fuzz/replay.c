/* replay.c - gives a fuzzer's function every file of a folder: what was found once is tried in
 * every run of the tests, without a fuzzing engine. replay FOLDER... */
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int files;

static void replay_file(const char *path) {
    FILE *f = fopen(path, "rb");
    if (!f) return;
    uint8_t *bytes = NULL;
    size_t size = 0, n;
    do {
        uint8_t *larger = realloc(bytes, size + 65536);
        if (!larger) break;
        bytes = larger;
        n = fread(bytes + size, 1, 65536, f);
        size += n;
    } while (n > 0);
    fclose(f);
    LLVMFuzzerTestOneInput(bytes, size);
    free(bytes);
    files++;
}

int main(int argc, char **argv) {
    for (int i = 1; i < argc; i++) {
        DIR *dir = opendir(argv[i]);
        for (const struct dirent *e; dir && (e = readdir(dir)) != NULL;) {
            char path[4096];
            if (e->d_name[0] == '.') continue;
            snprintf(path, sizeof path, "%s/%s", argv[i], e->d_name);
            replay_file(path);
        }
        if (dir) closedir(dir);
    }
    printf("%d passed, 0 failed, 0 skipped\n", files);
    return 0;
}

/* Replays what the fuzzers once found, and their seeds: nothing may crash, hang or leak. The name
 * of a file in tests/fuzz/regress starts with that of its fuzzer. */
#include "unit.h"

#define LLVMFuzzerTestOneInput fuzz_load
#include "../fuzz/fuzz_load.c"
#undef LLVMFuzzerTestOneInput
#define LLVMFuzzerTestOneInput fuzz_run
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
#include "../fuzz/fuzz_run.c"
#undef LLVMFuzzerTestOneInput
#define LLVMFuzzerTestOneInput fuzz_text
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
#include "../fuzz/fuzz_text.c"
#undef LLVMFuzzerTestOneInput

#include <dirent.h>
#include <stdio.h>

#define FUZZ_FOLDER SINTER_SOURCE_DIR "/tests/fuzz/"

typedef int (*fuzzer)(const uint8_t *data, size_t size);

static void replay_file(const char *path, fuzzer f) {
    FILE *file = fopen(path, "rb");
    if (!file) fail_msg("%s cannot be opened", path);
    static uint8_t buffer[1 << 20];
    size_t size = fread(buffer, 1, sizeof(buffer), file);
    fclose(file);
    uint8_t *exact = malloc(size + 1); /* so that reading past the end is seen */
    assert_non_null(exact);
    memcpy(exact, buffer, size);
    f(exact, size);
    free(exact);
}

/* Files whose name starts with `prefix`; returns how many. */
static int replay_folder(const char *folder, const char *prefix, fuzzer f) {
    DIR *dir = opendir(folder);
    int count = 0;
    for (struct dirent *e = dir ? readdir(dir) : NULL; e; e = readdir(dir)) {
        char path[4096];
        if (e->d_name[0] == '.' || strncmp(e->d_name, prefix, strlen(prefix)) != 0) continue;
        snprintf(path, sizeof(path), "%s/%s", folder, e->d_name);
        replay_file(path, f);
        count++;
    }
    if (dir) closedir(dir);
    return count;
}

static void findings(void **state) {
    (void)state;
    replay_folder(FUZZ_FOLDER "regress", "fuzz_load", fuzz_load);
    replay_folder(FUZZ_FOLDER "regress", "fuzz_run", fuzz_run);
    replay_folder(FUZZ_FOLDER "regress", "fuzz_text", fuzz_text);
}

static void seeds(void **state) {
    (void)state;
    assert_true(replay_folder(FUZZ_FOLDER "corpus/fuzz_text", "", fuzz_text) > 0);
    assert_true(replay_folder(FUZZ_FOLDER "corpus/fuzz_load", "", fuzz_load) > 0);
    assert_true(replay_folder(FUZZ_FOLDER "corpus/fuzz_load", "", fuzz_run) > 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(findings),
        cmocka_unit_test(seeds),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

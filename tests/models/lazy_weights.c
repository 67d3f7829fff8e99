/* lazy_weights.c - runs the model of tests/models/make_big.py and says how many bytes of its file
 * came into memory: lazy_weights MODEL */
#include <sinter.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WIDTH = 1024 };

/* Kilobytes of a file's mappings that are in this process's memory. */
static long resident_kb(const char *path) {
    FILE *f = fopen("/proc/self/smaps", "r");
    char line[4096], *real = realpath(path, NULL);
    long sum = 0, kb;
    bool ours = false;
    while (f && real && fgets(line, sizeof line, f)) {
        unsigned long begin, end;
        if (sscanf(line, "%lx-%lx ", &begin, &end) == 2)
            ours = strstr(line, real) != NULL;
        else if (ours && sscanf(line, "Rss: %ld kB", &kb) == 1)
            sum += kb;
    }
    if (f) fclose(f);
    free(real);
    return sum;
}

int main(int argc, char **argv) {
    sn_error err = {0};
    sn_model *model = NULL;
    sn_session *session = NULL;
    float x[WIDTH] = {0};
    sn_binding in = {"x", NULL}, out = {"y", NULL};
    int status = 1;
    if (argc == 2 && sn_model_load(argv[1], NULL, &model, &err) == SN_OK &&
        sn_session_create(model, NULL, &session, &err) == SN_OK &&
        sn_tensor_wrap(SN_FLOAT32, 2, (int64_t[]){1, WIDTH}, x, sizeof x, &in.value, &err) ==
            SN_OK &&
        sn_session_run(session, NULL, &in, 1, &out, 1, &err) == SN_OK) {
        const float *y = sn_tensor_const_data(out.value);
        long kb = resident_kb(argv[1]);
        printf("%ld kB of the file are in memory\n", kb);
        status = kb < 1024 && y[WIDTH - 1] == (float)(WIDTH - 1) ? 0 : 1;
    } else {
        fprintf(stderr, "%s\n", err.message);
    }
    sn_value_destroy(in.value);
    sn_value_destroy(out.value);
    sn_session_destroy(session);
    sn_model_destroy(model);
    return status;
}

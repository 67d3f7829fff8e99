/* classify.c - recognises a digit with sinter.h alone.
 *
 *     cc classify.c $(pkg-config --cflags --libs sinter) -o classify
 *     ./classify demo/digits.onnx
 */
#include <sinter.h>

#include <stdio.h>

static const char drawing[] = "  ####  "
                              "     ## "
                              "     ## "
                              "   ###  "
                              "     ## "
                              "     ## "
                              " #   ## "
                              "  ####  ";

int main(int argc, char **argv) {
    sn_error err;
    sn_model *model = NULL;
    sn_session *session = NULL;
    float pixels[64];
    for (int i = 0; i < 64; i++) pixels[i] = drawing[i] == '#';

    sn_binding in = {"image", NULL}, out = {"probabilities", NULL};
    if (sn_model_load(argc > 1 ? argv[1] : "demo/digits.onnx", NULL, &model, &err) == SN_OK &&
        sn_session_create(model, NULL, &session, &err) == SN_OK &&
        sn_tensor_wrap(SN_FLOAT32, 4, (int64_t[]){1, 1, 8, 8}, pixels, sizeof pixels, &in.value,
                       &err) == SN_OK &&
        sn_session_run(session, NULL, &in, 1, &out, 1, &err) == SN_OK) {
        const float *probability = sn_tensor_const_data(out.value);
        int best = 0;
        for (int i = 1; i < 10; i++)
            if (probability[i] > probability[best]) best = i;
        printf("this is a %d (%.1f %%)\n", best, 100 * (double)probability[best]);
    } else {
        fprintf(stderr, "%s\n", err.message);
    }

    int status = out.value ? 0 : 1;
    sn_value_destroy(in.value);
    sn_value_destroy(out.value);
    sn_session_destroy(session);
    sn_model_destroy(model);
    return status;
}

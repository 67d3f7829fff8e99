/* cmd_reduce.c - sinter reduce: makes a model smaller as long as a command says the same of it. */
#include "cli/cmd/commands.h"
#include "cli/formats/file.h"
#include "cli/cmd/inputs.h"

#include "sinter_part.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { NOT_STARTED = 127, SIGNALLED = 128 }; /* exit codes as shells have them */

typedef struct settings {
    cli_model_args model;
    const char *output;
    char **command; /* ends with NULL; one more place before it is for the path */
    size_t n_command;
    int64_t timeout; /* seconds */
    bool verbose;
} settings;

/* A value that a node makes. */
typedef struct value {
    const char *name; /* borrowed from the model */
    size_t node;
    bool is_output, is_used; /* in the whole model */
    bool used;               /* by a node that is kept; set anew for each candidate */
    bool dropped;            /* as an output */
} value;

typedef struct node {
    value **in, **out; /* those that nodes make */
    size_t n_in, n_out;
    bool kept;
} node;

typedef struct job {
    const settings *s;
    const sn_model *model;
    node *nodes;
    size_t n_nodes;
    value *values; /* by name */
    size_t n_values;
    char *path; /* of the candidate */
    int code;   /* what the command ends with for the whole model */
    size_t runs;
} job;

static bool take_option(cli_args *args, int id, const char *text, void *ctx) {
    settings *s = ctx;
    switch (id) {
    case OPT_OUTPUT:
        s->output = text;
        return true;
    case OPT_TIMEOUT:
        return cli_args_int(args, text, 1, 1000000, &s->timeout);
    case OPT_VERBOSE:
        s->verbose = true;
        return true;
    case CLI_ARG_OPERAND:
        if (args->only_operands && s->model.model) {
            s->command[s->n_command++] = (char *)text;
            return true;
        }
        break;
    default:
        break;
    }
    return cli_model_args_take(&s->model, args, id, text) > 0;
}

/* ---- The graph ---------------------------------------------------------------------------- */

static int by_name(const void *a, const void *b) {
    return strcmp(((const value *)a)->name, ((const value *)b)->name);
}

static value *find_value(const job *j, const char *name) {
    value key = {.name = name};
    if (!name || !name[0] || !j->n_values) return NULL;
    return bsearch(&key, j->values, j->n_values, sizeof key, by_name);
}

static void list_values(job *j) {
    size_t most = 0;
    sn_node_info info;
    for (size_t i = 0; sn_model_node(j->model, i, &info); i++) most += info.output_count;
    j->values = cli_alloc(most + 1, sizeof *j->values);
    for (size_t i = 0; sn_model_node(j->model, i, &info); i++) {
        for (size_t k = 0; k < info.output_count; k++) {
            const char *name = sn_model_node_output(j->model, i, k);
            if (name[0]) j->values[j->n_values++] = (value){.name = name, .node = i};
        }
    }
    if (j->n_values) qsort(j->values, j->n_values, sizeof *j->values, by_name);
}

static void list_nodes(job *j) {
    j->n_nodes = sn_model_node_count(j->model);
    j->nodes = cli_alloc(j->n_nodes + 1, sizeof *j->nodes);
    for (size_t i = 0; i < j->n_nodes; i++) {
        node *n = &j->nodes[i];
        sn_node_info info = {0};
        sn_model_node(j->model, i, &info);
        n->kept = true;
        n->in = cli_alloc(info.input_count + 1, sizeof *n->in);
        n->out = cli_alloc(info.output_count + 1, sizeof *n->out);
        for (size_t k = 0; k < info.input_count; k++) {
            value *v = find_value(j, sn_model_node_input(j->model, i, k));
            if (!v) continue;
            v->is_used = true;
            n->in[n->n_in++] = v;
        }
        for (size_t k = 0; k < info.output_count; k++) {
            value *v = find_value(j, sn_model_node_output(j->model, i, k));
            if (v) n->out[n->n_out++] = v;
        }
    }
    for (size_t i = 0; i < sn_model_output_count(j->model); i++) {
        sn_value_info info;
        value *v =
            sn_model_output(j->model, i, &info, NULL) == SN_OK ? find_value(j, info.name) : NULL;
        if (v) v->is_output = true;
    }
}

static void job_free(job *j) {
    for (size_t i = 0; i < j->n_nodes; i++) {
        free(j->nodes[i].in);
        free(j->nodes[i].out);
    }
    free(j->nodes);
    free(j->values);
    free(j->path);
}

/* ---- Candidates --------------------------------------------------------------------------- */

/* Whether a kept node's value is an output: nothing that is kept uses it, though it was of use, or
 * it was an output before. */
static bool is_wanted(const value *v) {
    return !v->dropped && (v->is_output || (v->is_used && !v->used));
}

/* Adds the outputs of a kept node, at least one if nothing else uses the node. */
static void add_outputs(const node *n, const char **names, size_t *count) {
    bool needed = false;
    for (size_t i = 0; i < n->n_out; i++) {
        needed |= n->out[i]->used;
        if (!is_wanted(n->out[i])) continue;
        needed = true;
        names[(*count)++] = n->out[i]->name;
    }
    if (!needed && n->n_out) names[(*count)++] = n->out[0]->name;
}

/* The nodes that are kept as a model: what others made for them are inputs. */
static sn_status make_candidate(const job *j, sn_model **out, sn_error *err) {
    const char **inputs = cli_alloc(j->n_values + 1, sizeof *inputs);
    const char **outputs = cli_alloc(j->n_values + 1, sizeof *outputs);
    size_t n_inputs = 0, n_outputs = 0;
    for (size_t i = 0; i < j->n_values; i++) j->values[i].used = false;
    for (size_t i = 0; i < j->n_nodes; i++)
        for (size_t k = 0; j->nodes[i].kept && k < j->nodes[i].n_in; k++)
            j->nodes[i].in[k]->used = true;
    for (size_t i = 0; i < j->n_values; i++)
        if (j->values[i].used && !j->nodes[j->values[i].node].kept)
            inputs[n_inputs++] = j->values[i].name;
    for (size_t i = 0; i < j->n_nodes; i++)
        if (j->nodes[i].kept) add_outputs(&j->nodes[i], outputs, &n_outputs);
    sn_status status = sn_model_extract(j->model, inputs, n_inputs, outputs, n_outputs, out, err);
    free(inputs);
    free(outputs);
    return status;
}

static sn_status write_candidate(const job *j, const char *path, sn_error *err) {
    sn_model *part = NULL;
    cli_output file = {0};
    sn_status status = make_candidate(j, &part, err);
    if (status == SN_OK) status = cli_output_open(&file, path, err);
    if (status == SN_OK) {
        status = sn_model_write(part, SN_FORMAT_ONNX, cli_stream_write, file.stream, err);
        sn_status closed = cli_output_close(&file, status == SN_OK, status == SN_OK ? err : NULL);
        if (status == SN_OK) status = closed;
    }
    sn_model_destroy(part);
    return status;
}

/* ---- The command -------------------------------------------------------------------------- */

static void become_command(const settings *s) {
    int null = open("/dev/null", O_RDWR);
    if (null >= 0) {
        dup2(null, STDIN_FILENO);
        if (!s->verbose) {
            dup2(null, STDOUT_FILENO);
            dup2(null, STDERR_FILENO);
        }
    }
    alarm((unsigned)s->timeout); /* stays over exec and ends the command */
    execvp(s->command[0], s->command);
    _exit(NOT_STARTED);
}

/* What the command ends with for the model at `path`; -1: no process could be made. */
static int run_command(job *j, const char *path) {
    int status = 0;
    j->s->command[j->s->n_command] = (char *)path;
    j->runs++;
    pid_t pid = fork();
    if (pid == 0) become_command(j->s);
    if (pid < 0) return -1;
    while (waitpid(pid, &status, 0) < 0)
        if (errno != EINTR) return -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : SIGNALLED + WTERMSIG(status);
}

/* Whether the nodes that are kept make a model of which the command says the same. */
static bool holds(job *j) {
    return write_candidate(j, j->path, NULL) == SN_OK && run_command(j, j->path) == j->code;
}

/* ---- Shrinking ---------------------------------------------------------------------------- */

static void keep(job *j, const size_t *list, size_t count, bool kept) {
    for (size_t i = 0; i < count; i++) j->nodes[list[i]].kept = kept;
}

/* Leaves out nodes in runs of neighbours, long ones first, until none can be left out alone.
 * Returns how many are kept. */
static size_t drop_nodes(job *j) {
    size_t count = j->n_nodes, *list = cli_alloc(count + 1, sizeof *list);
    for (size_t i = 0; i < count; i++) list[i] = i;
    bool dropped = true;
    for (size_t size = count / 2; size && (size > 1 || dropped);) {
        dropped = false;
        for (size_t at = 0; at < count && count > 1;) {
            size_t n = size < count - at ? size : count - at;
            if (n == count) break;
            keep(j, list + at, n, false);
            if (holds(j)) {
                memmove(list + at, list + at + n, (count - at - n) * sizeof *list);
                count -= n;
                dropped = true;
            } else {
                keep(j, list + at, n, true);
                at += n;
            }
        }
        if (size > 1) {
            size = size / 2 < count / 2 ? size / 2 : count / 2;
            if (size == 0) break;
            if (size == 1) dropped = true;
        }
    }
    free(list);
    return count;
}

/* Leaves out outputs that the command does not need. */
static void drop_outputs(job *j) {
    for (size_t i = 0; i < j->n_values; i++) {
        value *v = &j->values[i];
        if (!j->nodes[v->node].kept || !is_wanted(v)) continue;
        v->dropped = true;
        if (!holds(j)) v->dropped = false;
    }
}

static int reduce(job *j) {
    const settings *s = j->s;
    sn_error err = {0};
    list_values(j);
    list_nodes(j);
    if (!j->n_nodes) {
        cli_complain("reduce: the model has no nodes");
        return CLI_UNREADABLE;
    }
    j->code = run_command(j, s->model.model);
    if (j->code < 0 || j->code == NOT_STARTED) {
        cli_complain("reduce: %s could not be run", s->command[0]);
        return CLI_USAGE;
    }
    sn_status status = write_candidate(j, j->path, &err);
    if (status != SN_OK) return cli_complain_error("reduce", &err, CLI_RUN_FAILED);
    int again = run_command(j, j->path);
    if (again != j->code) {
        cli_complain("reduce: %s ends with %d for the model and with %d for the model written anew",
                     s->command[0], j->code, again);
        return CLI_FAILED;
    }
    size_t left = drop_nodes(j);
    drop_outputs(j);
    status = write_candidate(j, s->output, &err);
    if (status != SN_OK) return cli_complain_error("reduce", &err, CLI_RUN_FAILED);
    cli_text out = {0};
    cli_text_addf(&out, "%zu of %zu nodes are left, exit code %d, %zu runs of the command\n", left,
                  j->n_nodes, j->code, j->runs);
    cli_text_print(&out);
    cli_text_free(&out);
    return CLI_OK;
}

static int reduce_in_folder(const settings *s, const sn_model *model) {
    const char *base = getenv("TMPDIR");
    char *folder = cli_path_join(base && base[0] ? base : "/tmp", "sinter-reduce-XXXXXX");
    job j = {.s = s, .model = model};
    int code = CLI_RUN_FAILED;
    if (mkdtemp(folder)) {
        j.path = cli_path_join(folder, "model.onnx");
        code = reduce(&j);
        unlink(j.path);
        rmdir(folder);
    } else {
        cli_complain("reduce: %s: %s", folder, strerror(errno));
    }
    job_free(&j);
    free(folder);
    return code;
}

int cli_cmd_reduce(cli_args *args) {
    settings s = {.timeout = 600};
    sn_model *model = NULL;
    cli_model_args_init(&s.model, args);
    s.command = cli_alloc((size_t)args->count + 2, sizeof *s.command);
    int code = cli_args_read(args, take_option, &s);
    if (code < 0 && !s.model.model) code = cli_args_missing(args, "model");
    if (code < 0 && !s.output) {
        cli_complain("reduce: -o names no file to write");
        code = CLI_USAGE;
    }
    if (code < 0 && !s.n_command) code = cli_args_missing(args, "command after --");
    if (code < 0) code = cli_open_model(&s.model, &model);
    if (model) code = reduce_in_folder(&s, model);
    sn_model_destroy(model);
    free(s.command);
    cli_model_args_free(&s.model);
    return code;
}

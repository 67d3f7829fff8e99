/* folder.h - where models lie on disk. Nothing else in the server makes paths.
 *
 *     DIR/resnet/config.pbtxt      or config.json; may be missing
 *     DIR/resnet/1/model.onnx      versions are numbers
 *     DIR/resnet/model.onnx        without versions: version 1
 *     DIR/resnet.onnx              without such a folder, or with one that has only a configuration
 */
#ifndef SRV_ENGINE_FOLDER_H
#define SRV_ENGINE_FOLDER_H

#include "server/engine/config.h"

typedef struct srv_folder {
    char *root;   /* the folder; of a single file, the one it lies in */
    char *single; /* the name of the only model, when the repository is one .onnx file */
    char *file;   /* and that file */
} srv_folder;

/* Tells whether a file is still the one that was loaded. All bytes are set: compare with memcmp. */
typedef struct srv_fingerprint {
    uint64_t device, inode, size, mtime_ns;
} srv_fingerprint;

/* Where a version's file is. */
typedef enum srv_layout { SRV_IN_VERSION, SRV_IN_MODEL, SRV_AT_TOP } srv_layout;

typedef struct srv_found_version {
    int64_t number;
    srv_layout layout;
    srv_fingerprint print;
    bool chosen; /* the caller's */
} srv_found_version;

typedef struct srv_found_versions {
    srv_found_version items[SRV_VERSIONS]; /* largest first */
    size_t count;
    srv_fingerprint config; /* what its configuration file is now; zeros when there is none */
} srv_found_versions;

typedef struct srv_name_list {
    char **items; /* sorted */
    size_t count;
} srv_name_list;

sn_status srv_folder_open(srv_folder *folder, const char *path, sn_error *err);
void srv_folder_close(srv_folder *folder);

/* Whether a name may be a model's: letters, digits, '-', '_', '.', not beginning with a dot. */
bool srv_folder_valid_name(sni_str name);
/* Whether a model of that name lies here. */
bool srv_folder_has(const srv_folder *folder, sni_str name);
/* Every model's name, and what looks like a model but cannot be one for its name. False when the
 * folder cannot be read. */
bool srv_folder_names(const srv_folder *folder, srv_name_list *out, srv_name_list *unfit);
void srv_name_list_free(srv_name_list *list);

/* A model's versions. False when memory or descriptors are out: nothing is known then. */
bool srv_folder_versions(const srv_folder *folder, const char *name, srv_found_versions *out);

/* The text of config.json (`*json`) or config.pbtxt; `out` stays empty when there is neither. */
sn_status srv_folder_config(const srv_folder *folder, const char *name, srv_text *out, bool *json,
                            sn_error *err);

/* The path of a version's model; free() it. NULL without memory. */
char *srv_folder_model_path(const srv_folder *folder, const char *name,
                            const srv_found_version *version);

#endif

/* describe.h - a model's metadata, configuration and statistics as JSON. */
#ifndef SRV_API_DESCRIBE_H
#define SRV_API_DESCRIBE_H

#include "server/api/json_out.h"
#include "server/engine/repository.h"

void srv_describe_model(srv_json_out *out, const srv_model *model);
void srv_describe_config(srv_json_out *out, const srv_model *model);
void srv_describe_stats(srv_json_out *out, srv_model *model);
/* A line of the index. */
void srv_describe_entry(srv_json_out *out, const srv_index_entry *entry);
/* The statistics as they are at one moment. */
void srv_model_stats(srv_model *model, srv_stats *out);

/* Extensions of the protocol that this server has, NULL at the end. */
extern const char *const srv_extensions[];

#endif

/* providers.h - what a session's providers took, as text. */
#ifndef CLI_CMD_PROVIDERS_H
#define CLI_CMD_PROVIDERS_H

#include "cli/cli.h"

/* A table of who runs how many nodes; nothing where no provider is used. */
void cli_add_providers(cli_text *out, const sn_session *session);
/* Every node that a provider did not get, and why. */
void cli_add_refusals(cli_text *out, const sn_session *session);

#endif

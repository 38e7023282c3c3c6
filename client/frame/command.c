/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "client/frame/command.h"

#include <string.h>

#include "util/near.h"

/* Finds a command by its name, and suggests the most similar one if the name is mistyped. */

const Command *command_by_name(const Command *const *commands, const char *name) {
    for (size_t i = 0; commands[i]; i++)
        if (strcmp(commands[i]->name, name) == 0)
            return commands[i];
    return NULL;
}

int command_complain_unknown(const Command *const *commands, const char *name) {
    NearNames near = {};

    for (size_t i = 0; commands[i]; i++)
        near_offer(&near, commands[i]->name, near_distance(commands[i]->name, name));
    if (near.n > 0)
        return complain(STATUS_USAGE, "There is no command '%s'. Did you mean '%s'?", name,
                        near.names[0].name);
    return complain(STATUS_USAGE, "There is no command '%s'; 'profctl --help' lists the commands.",
                    name);
}

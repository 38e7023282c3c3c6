/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Prints the help of profctl, made from the tables. */

#include "client/frame/command.h"

void help_print_program(Context *c);
void help_print_command(Context *c, const Command *command);

/* For scripts, one row per line, fields separated by tabs: command, short, long, argument, help.
 * The global options belong to the command "*". A row with neither short nor long is the command
 * itself: its arguments and its summary. */
void help_print_options(Context *c);

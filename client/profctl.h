/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The table of commands, the global options, and all of profctl except main(). */

#include "client/frame/command.h"

extern const Command command_archive;
extern const Command command_cat_config;
extern const Command command_changed;
extern const Command command_convert;
extern const Command command_diff;
extern const Command command_doctor;
extern const Command command_dump;
extern const Command command_firefox;
extern const Command command_flamegraph;
extern const Command command_folded;
extern const Command command_heatmap;
extern const Command command_pprof;
extern const Command command_gateway;
extern const Command command_report;
extern const Command command_speedscope;
extern const Command command_help;
extern const Command command_info;
extern const Command command_list;
extern const Command command_log_level;
extern const Command command_merge;
extern const Command command_metrics;
extern const Command command_monitor;
extern const Command command_pause;
extern const Command command_ping;
extern const Command command_reload;
extern const Command command_resume;
extern const Command command_rotate;
extern const Command command_show_session;
extern const Command command_start;
extern const Command command_status;
extern const Command command_stop;
extern const Command command_vacuum;
extern const Command command_pin;
extern const Command command_rm;
extern const Command command_show_snapshot;
extern const Command command_snapshot;
extern const Command command_snapshots;
extern const Command command_top;
extern const Command command_verify;

/* Ended by NULL; every command accepts the global options. */
extern const Command *const commands[];
extern const Option global_options[];

int client_run(int argc, char **argv);

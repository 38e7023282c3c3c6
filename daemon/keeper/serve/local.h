/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* A keeper for a program that does not record and only checks what could be opened. */

#include "keeper/request/keeper-client.h"

/* Serves this process with its present rights until keeper_disconnect(). */
int keeper_local(Keeper **ret);

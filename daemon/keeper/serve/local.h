/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* A keeper for a program that records nothing and only wants to know what could be opened. */

#include "keeper/request/keeper-client.h"

/* Serves this process, with the rights that it has, until keeper_disconnect(). */
int keeper_local(Keeper **ret);

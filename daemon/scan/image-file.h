/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Opens the very file that a process has mapped, or has had mapped, deleted or not. */

#include "scan/cache/mapped-image.h"
#include "scan/process.h"

typedef struct ImageOpener ImageOpener;

/* Borrows all; proc: a descriptor of /proc. */
int image_opener_new(Keeper *keeper, ProcessReader *processes, int proc, ImageOpener **ret);
ImageOpener *image_opener_free(ImageOpener *opener);
DEFINE_CLEANUP(ImageOpener *, image_opener_free);

/* 0; -ENODATA: no file is mapped there; -EHOSTDOWN: its device is left alone for now; -EAGAIN: the
 * keeper's opener ended, so ask again; any other: it cannot be opened, or is not for certain the
 * file that was mapped. */
int image_opener_open(ImageOpener *opener, const MappedImage *image, KeeperFileId *ret_id,
                      int *ret_fd);
/* The file system of this file did not answer: for a while no file of its device is touched. */
void image_opener_avoid(ImageOpener *opener, const MappedImage *image);

/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Opens exactly the file that a process maps or has mapped, even if it was deleted. */

#include "scan/cache/mapped-image.h"
#include "scan/process.h"

typedef struct ImageOpener ImageOpener;

/* Borrows all arguments; proc: a descriptor of /proc. */
int image_opener_new(Keeper *keeper, ProcessReader *processes, int proc, ImageOpener **ret);
ImageOpener *image_opener_free(ImageOpener *opener);
DEFINE_CLEANUP(ImageOpener *, image_opener_free);

/* 0; -ENODATA: no file is mapped there; -EHOSTDOWN: its device is avoided at present; -EAGAIN: the
 * keeper's opener ended, so try again; other errors: it cannot be opened, or is not certain to be
 * the mapped file. */
int image_opener_open(ImageOpener *opener, const MappedImage *image, KeeperFileId *ret_id,
                      int *ret_fd);
/* The file system of this file did not answer: avoids all files of its device for a while. */
void image_opener_avoid(ImageOpener *opener, const MappedImage *image);

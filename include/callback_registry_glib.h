/* SPDX-License-Identifier: Apache-2.0
 *
 * callback_registry_glib.h - owners that hear of a GObject's death.
 *
 *   cbr_owner owner;
 *   if (cbr_owner_for_gobject(registry, window, "window", &owner) == CBR_OK)
 *     CBR_REGISTER(registry, "redraw", redraw, window, NULL, owner, &token);
 *
 * What is registered on the owner ends when the object is disposed of, and no
 * destructor has to say so. In C and C++; needs gobject-2.0. Since 0.1.0.
 */
#ifndef CALLBACK_REGISTRY_GLIB_H
#define CALLBACK_REGISTRY_GLIB_H

#include "callback_registry.h"

#include <glib-object.h>

/* The owner's number is the data: nothing has to be freed, and an owner that
 * has ended before is left alone. */
static inline void cbr_gobject_died_(gpointer owner, GObject *object) {
  cbr_status status = cbr_invalidate_wait(
      (cbr_owner)(guintptr)owner, CBR_REASON_OBJECT_DIED, CBR_FOREVER);
  (void)status;
  (void)object;
}

/* Gives the owner of a GObject, as cbr_owner_for_object does, and sees to it
 * that the owner ends when the object is disposed of: its weak references are
 * told, after dispose and before finalize.
 *   object  borrowed; a reference must be held until this has returned
 *   out     receives the owner
 * CBR_OK; as cbr_owner_for_object.
 * Threads: the owner ends on the one that drops the last reference, and waits
 * there, without limit, until no other thread is inside a callback: what they
 * use of the object is there until they return. Whoever drops the last
 * reference must not hold a lock that a callback takes. Dropped inside of one
 * of these callbacks, it does not wait for that one.
 * An object that g_object_run_dispose disposes of early is dead for the
 * registry; asked again, it has a new owner. */
CBR_WARN_UNUSED
static inline cbr_status cbr_owner_for_gobject(cbr_registry registry,
                                               gpointer object,
                                               const char *label,
                                               cbr_owner *out) {
  cbr_status status = cbr_owner_for_object(registry, object, label, out);
  gpointer owner = (gpointer)(guintptr)*out;
  /* Once for each owner; a second notice would find it dead. */
  if (status != CBR_OK ||
      g_object_get_data((GObject *)object, "cbr-owner") == owner)
    return status;
  g_object_set_data((GObject *)object, "cbr-owner", owner);
  g_object_weak_ref((GObject *)object, cbr_gobject_died_, owner);
  return status;
}

#endif

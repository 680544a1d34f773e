// SPDX-License-Identifier: Apache-2.0
//
// GLib has priorities of two kinds only (G_CONNECT_AFTER), which is not what
// is asked for. A handler that it does not know is a warning.
#include <glib-object.h>

#include "../emitter.h"

namespace {

bool has_warned;

void note_warning(const gchar *, GLogLevelFlags, const gchar *, gpointer) {
  has_warned = true;
}

guint fired() {
  static const guint signal = [] {
    g_log_set_default_handler(note_warning, nullptr);
    return g_signal_new("fired", G_TYPE_OBJECT, G_SIGNAL_RUN_LAST, 0, nullptr,
                        nullptr, nullptr, G_TYPE_NONE, 0);
  }();
  return signal;
}

void call_handler(gpointer, gpointer data) {
  (*static_cast<handler *>(data))();
}

void delete_handler(gpointer data, GClosure *) {
  delete static_cast<handler *>(data);
}

class glib_connection : public connection {
 public:
  glib_connection(GObject *object, const handler &call)
      : object_(object),
        id_(g_signal_connect_data(object, "fired", G_CALLBACK(call_handler),
                                  new handler(call), delete_handler,
                                  static_cast<GConnectFlags>(0))) {}
  answer disconnect() override {
    has_warned = false;
    g_signal_handler_disconnect(object_, id_);
    return has_warned ? answer::was_gone : answer::done;
  }
  void block() override { g_signal_handler_block(object_, id_); }
  void unblock() override { g_signal_handler_unblock(object_, id_); }

 private:
  GObject *object_;
  gulong id_;
};

class glib_emitter : public emitter {
 public:
  glib_emitter() {
    fired();
    object_ = static_cast<GObject *>(g_object_new(G_TYPE_OBJECT, nullptr));
  }
  // An emission has a reference to its object: disposing disconnects.
  ~glib_emitter() override {
    g_object_run_dispose(object_);
    g_object_unref(object_);
  }
  std::unique_ptr<connection> connect(const handler &call) override {
    return std::make_unique<glib_connection>(object_, call);
  }
  void emit() override { g_signal_emit(object_, fired(), 0); }

 private:
  GObject *object_;
};

}  // namespace

std::unique_ptr<emitter> make_emitter() {
  return std::make_unique<glib_emitter>();
}

std::string tear_down() { throw not_offered(); }

std::string peer_name() {
  return "GLib " + std::to_string(glib_major_version) + "." +
         std::to_string(glib_minor_version) + "." +
         std::to_string(glib_micro_version);
}

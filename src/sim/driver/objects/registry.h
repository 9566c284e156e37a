// Handles: what the caller holds is the address of an object; it is looked up before it is used, so
// that a stale or invented one is refused instead of followed.
#pragma once

#include "sim/driver/objects/call.h"

#include <memory>
#include <mutex>
#include <unordered_map>
#include <vector>

namespace tilewright::sim {

/// Thread    safe
template <class Handle, class T>
class Registry {
 public:
  static Handle handle_of(const T* object) noexcept {
    return reinterpret_cast<Handle>(const_cast<T*>(object));
  }

  Handle add(std::shared_ptr<T> object) {
    const std::lock_guard lock(mutex_);
    const Handle handle = handle_of(object.get());
    objects_[handle] = std::move(object);
    return handle;
  }
  /// nullptr if there is none.
  std::shared_ptr<T> look_up(Handle handle) const {
    const std::lock_guard lock(mutex_);
    const auto found = objects_.find(handle);
    return found == objects_.end() ? nullptr : found->second;
  }
  /// Errors   Failure: CUDA_ERROR_INVALID_HANDLE, or what is given
  std::shared_ptr<T> find(Handle handle, CUresult otherwise = CUresult::kInvalidHandle) const {
    std::shared_ptr<T> object = look_up(handle);
    expect(object != nullptr, otherwise);
    return object;
  }
  std::shared_ptr<T> take(Handle handle, CUresult otherwise = CUresult::kInvalidHandle) {
    const std::lock_guard lock(mutex_);
    const auto found = objects_.find(handle);
    expect(found != objects_.end(), otherwise);
    std::shared_ptr<T> object = std::move(found->second);
    objects_.erase(found);
    return object;
  }
  /// Removes those for which the predicate holds; returns them, so that they die outside the lock.
  template <class Predicate>
  std::vector<std::shared_ptr<T>> take_if(Predicate&& is_meant) {
    const std::lock_guard lock(mutex_);
    std::vector<std::shared_ptr<T>> taken;
    for (auto it = objects_.begin(); it != objects_.end();) {
      if (!is_meant(*it->second)) {
        ++it;
        continue;
      }
      taken.push_back(std::move(it->second));
      it = objects_.erase(it);
    }
    return taken;
  }

 private:
  mutable std::mutex mutex_;
  std::unordered_map<Handle, std::shared_ptr<T>> objects_;
};

}  // namespace tilewright::sim

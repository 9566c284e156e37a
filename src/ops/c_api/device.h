// What a tw_device is.
#pragma once

#include "tilewright/device.h"

#include <string>

struct tw_device {
  tilewright::Device device;
  std::string description;
};

#include "python/settings.h"

namespace redco::python {

namespace {

// A setting of the user's dataclass, and its value.
struct OwnSetting {
  Setting setting;
  std::vector<SettingValue> values;
};

SettingValue to_value(const py::handle& x) {
  if (x.is_none()) return {};
  if (py::isinstance<py::bool_>(x)) return py::cast<bool>(x);
  if (py::isinstance<py::int_>(x)) return py::cast<i64>(x);
  if (py::isinstance<py::float_>(x)) return py::cast<double>(x);
  return py::cast<std::string>(x);
}
py::object from_value(const SettingValue& v) {
  return std::visit(
      [](const auto& x) -> py::object {
        if constexpr (std::is_same_v<std::decay_t<decltype(x)>, std::monostate>)
          return py::none();
        else
          return py::cast(x);
      },
      v);
}

}  // namespace

py::dict read_settings(const py::list& specs, const std::string& section, const std::string& json,
                       const Origins& origins) {
  std::vector<std::shared_ptr<OwnSetting>> own;
  std::vector<Setting> settings;
  for (const py::handle& spec : specs) {
    const py::tuple t = py::cast<py::tuple>(spec);
    auto s = std::make_shared<OwnSetting>();
    const std::string kind = py::cast<std::string>(t[1]);
    s->setting.name = py::cast<std::string>(t[0]);
    s->setting.kind = kind == "bool"    ? Setting::Kind::boolean
                      : kind == "int"   ? Setting::Kind::integer
                      : kind == "float" ? Setting::Kind::real
                                        : Setting::Kind::text;
    s->setting.list = py::cast<bool>(t[2]);
    s->setting.nullable = py::cast<bool>(t[3]);
    s->setting.choices = py::cast<std::vector<std::string>>(t[4]);
    s->setting.help = py::cast<std::string>(t[5]);
    if (s->setting.list) {
      for (const py::handle& x : t[6]) s->values.push_back(to_value(x));
    } else {
      s->values.push_back(to_value(t[6]));
    }
    OwnSetting* place = s.get();
    s->setting.get = [place] { return place->values; };
    s->setting.set = [place](const std::vector<SettingValue>& v) { place->values = v; };
    settings.push_back(s->setting);
    own.push_back(std::move(s));
  }
  load_section(settings, section, json, origins);
  py::dict out;
  for (const auto& s : own) {
    if (s->setting.list) {
      py::list values;
      for (const SettingValue& v : s->values) values.append(from_value(v));
      out[s->setting.name.c_str()] = values;
    } else {
      py::object v = from_value(s->values.at(0));
      if (s->setting.kind == Setting::Kind::real && !v.is_none()) v = py::float_(py::cast<double>(v));
      out[s->setting.name.c_str()] = v;
    }
  }
  return out;
}

}  // namespace redco::python

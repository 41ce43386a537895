#include "tools/plan/machines_file.h"

#include <algorithm>

#include "core/error.h"
#include "layers/model.h"
#include "tools/run_directory/json_file.h"
#include "tools/run_directory/schema.h"

namespace duplex::tools {

template <class Fields>
void describe(Fields& f, MeasuredMachine& m) {
  f.field("address", m.address);
  f.field("host", m.host);
  f.field("t_grad_s", m.grad, Range::not_negative);
  f.field("owner_bytes_per_s", m.owner_rate, Range::not_negative);
  f.optional("seal_bytes_per_s", m.seal_rate, Range::not_negative);
  f.optional("factor_operations_per_s", m.factor_rate, Range::not_negative);
  f.optional("send_processor_s_per_byte", m.send_processor, Range::not_negative);
  f.optional("receive_processor_s_per_byte", m.receive_processor, Range::not_negative);
  f.optional("frame_processor_s", m.frame_processor, Range::not_negative);
  f.optional("gradients_down_s", m.gradients_down, Range::not_negative);
  f.optional("weights_up_s", m.weights_up, Range::not_negative);
  f.optional("sample_processor_s", m.sample_processor, Range::not_negative);
  f.optional("computes_on", m.computes_on);
  f.unless_zero("cores", m.cores);
  f.field("memory_bytes", m.memory_bytes, Range::not_negative);
  f.field("threads", m.threads, Range::not_negative);
  f.optional("slots", m.slots);
  f.field("out_bytes_per_s", m.out);
  f.field("in_bytes_per_s", m.in);
  f.field("round_trip_s", m.round_trip);
  f.field("profile", m.profile);
  f.later("parts", m.parts);
}

namespace {

template <class Fields>
void describe(Fields& f, MachinesFile& m) {
  f.version();
  f.field("network", m.network);
  f.field("title", m.title);
  f.field("input", m.input);
  f.field("classes", m.classes, Range::not_negative);
  f.field("batch", m.batch, Range::not_negative);
  f.optional("network_file", m.network_file);
  f.optional("device", m.device);
  f.optional("precision", m.precision);
  f.optional("layout", m.layout);
  f.optional("link_rate", m.link_rate);
  f.field("machines", m.machines);
}

void check(const MachinesFile& file) {
  if (file.machines.empty()) throw Error("is damaged: it has no machines");
  if (file.batch < 1 || file.batch > most_images)
    throw Error("is damaged: batch is no number of images");
  for (const MeasuredMachine& machine : file.machines) {
    for (const std::vector<double>* list : {&machine.out, &machine.in, &machine.round_trip})
      if (list->size() != file.machines.size())
        throw Error("is damaged: the links of " + machine.address + " are not one a machine");
    if (machine.slots && (*machine.slots < 1 || *machine.slots > 1024))
      throw Error("is damaged: " + machine.address + " has no such slots");
    if (!(machine.grad > 0.0) || !(machine.rate() > 0.0) || !(machine.owner_rate > 0.0))
      throw Error("is damaged: what " + machine.address + " has measured is not above zero");
  }
}

std::string dumped(JsonWriter::Json json) {
  return json.dump(1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

}  // namespace

double MeasuredMachine::rate() const {
  const auto most = [](const std::vector<double>& rates) {
    return rates.empty() ? 0.0 : *std::max_element(rates.begin(), rates.end());
  };
  return std::min(most(out), most(in));
}

bool MeasuredMachine::is_beside(const MeasuredMachine& other) const {
  const auto name = [](const std::string& address) {
    return address.substr(0, address.rfind(':'));
  };
  return host == other.host && name(address) == name(other.address);
}

std::string text_of(MachinesFile file) {
  JsonWriter writer;
  describe(writer, file);
  return dumped(writer.take());
}

MachinesFile read_machines(const std::string& path) {
  const nlohmann::json json = read_json_file(path);
  MachinesFile file;
  try {
    JsonReader reader(json);
    describe(reader, file);
    check(file);
  } catch (const Error& error) {
    throw Error(path + " " + error.what());
  }
  return file;
}

MachinesFile machines_at(const MachinesFile& file, const std::string& path,
                         const std::vector<std::string>& addresses) {
  std::vector<std::size_t> places;
  for (const std::string& address : addresses) {
    const auto found =
        std::find_if(file.machines.begin(), file.machines.end(),
                     [&](const MeasuredMachine& machine) { return machine.address == address; });
    if (found == file.machines.end()) {
      std::string measured;
      for (const MeasuredMachine& machine : file.machines)
        measured += (measured.empty() ? "" : ", ") + machine.address;
      throw Error(
          path + " is of the machines " + measured + ", and not of " + address + ": measure again",
          Exit::usage);
    }
    places.push_back(static_cast<std::size_t>(found - file.machines.begin()));
  }
  const auto taken = [&](const auto& list) {
    auto some = list;
    some.clear();
    for (const std::size_t place : places) some.push_back(list[place]);
    return some;
  };
  MachinesFile some = file;
  some.machines = taken(file.machines);
  for (MeasuredMachine& machine : some.machines)
    for (std::vector<double>* list : {&machine.out, &machine.in, &machine.round_trip})
      *list = taken(*list);
  return some;
}

std::string text_of(MeasuredMachine machine) {
  JsonWriter writer;
  describe(writer, machine);
  return dumped(writer.take());
}

MeasuredMachine parse_machine(const std::string& text, int rank) {
  MeasuredMachine machine;
  try {
    const nlohmann::json json = nlohmann::json::parse(text);
    JsonReader reader(json);
    describe(reader, machine);
  } catch (const nlohmann::json::exception&) {
    throw Error("what rank " + std::to_string(rank) + " has measured is no JSON");
  } catch (const Error& error) {
    throw Error("what rank " + std::to_string(rank) + " has measured " + error.what());
  }
  return machine;
}

}  // namespace duplex::tools

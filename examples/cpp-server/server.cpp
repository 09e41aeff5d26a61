// A small model server in C++: loads its models in parallel, warms them up, and answers over HTTP.
//   server PORT MODEL.pt=8x16[,8x4...] ...      then: curl localhost:PORT/MODEL
// One tensor of ones for each shape, float or (i4x5) int64, is the input of the warm-up and of such a request. A POST to
// /v2/models/MODEL/infer has tensors of its own, as JSON of the Open Inference protocol.
// Sockets of the system: LibTorch's wheels up to 2.6 have libstdc++'s older strings, Debian's HTTP libraries the newer.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <torch/script.h>
#include <unistd.h>

#include <algorithm>
#include <condition_variable>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <iostream>
#include <map>
#include <mutex>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

namespace {
constexpr int kWorkers = 8, kWarmUpCalls = 3;

struct Model {
  torch::jit::Module module;
  std::vector<torch::jit::IValue> inputs;
};

std::vector<torch::jit::IValue> inputs_of(const std::string& shapes) {
  std::vector<torch::jit::IValue> inputs;
  std::istringstream text(shapes);
  for (std::string shape; std::getline(text, shape, ',');) {
    std::vector<int64_t> sizes;
    bool whole = shape[0] == 'i';
    std::istringstream numbers(shape.substr(whole));
    for (std::string size; std::getline(numbers, size, 'x');) sizes.push_back(std::stoll(size));
    inputs.emplace_back(torch::ones(sizes, whole ? torch::kLong : torch::kFloat));
  }
  return inputs;
}

Model load_model(const std::string& file, const std::string& shapes) {
  return {torch::jit::load(file), inputs_of(shapes)};
}

void warm_up(Model& model) {
  torch::NoGradGuard no_grad;
  for (int call = 0; call < kWarmUpCalls; ++call) model.module.forward(model.inputs);
}

std::string name_of(const std::string& file) {
  std::string name = file.substr(file.find_last_of('/') + 1);
  return name.substr(0, name.find('.'));
}

std::string answer(Model& model) {
  torch::NoGradGuard no_grad;
  torch::jit::IValue output = model.module.forward(model.inputs);
  std::ostringstream text;
  if (output.isTensor())
    text << output.toTensor().sizes() << " mean " << output.toTensor().to(torch::kDouble).mean().item<double>();
  else
    text << output.tagKind();
  return text.str() + "\n";
}

// As much of JSON as a request needs: the value behind a key, the objects of a list, and all numbers in a text.
std::string value_of(const std::string& text, const std::string& key) {
  size_t at = text.find("\"" + key + "\"");
  if (at == std::string::npos) throw std::runtime_error("no " + key);
  at = text.find_first_not_of(": \t\r\n", at + key.size() + 2);
  size_t end = at;
  int depth = 0;
  do {
    if (text[end] == '[' || text[end] == '{') ++depth;
    if (text[end] == ']' || text[end] == '}') --depth;
    ++end;
  } while (end < text.size() && (depth > 0 || (text[end] != ',' && text[end] != '}')));
  return text.substr(at, end - at);
}

template <typename Number>
std::vector<Number> numbers_in(const std::string& text) {
  std::vector<Number> numbers;
  for (const char* at = text.c_str(); (at += std::strspn(at, "[], \t\r\n")), *at;) {
    char* end;
    numbers.push_back(static_cast<Number>(std::is_integral<Number>() ? std::strtoll(at, &end, 10) : std::strtod(at, &end)));
    if (end == at) throw std::runtime_error("no number: " + std::string(at, std::min<size_t>(9, std::strlen(at))));
    at = end;
  }
  return numbers;
}

std::string infer(Model& model, const std::string& name, const std::string& body) {
  std::vector<torch::jit::IValue> inputs;
  std::string list = value_of(body, "inputs");
  for (size_t at = 0; (at = list.find('{', at)) != std::string::npos; at = list.find('}', at)) {
    std::string input = list.substr(at);
    auto sizes = numbers_in<int64_t>(value_of(input, "shape"));
    std::string data = value_of(input, "data");
    bool whole = value_of(input, "datatype").find("INT") != std::string::npos;
    torch::Tensor tensor = whole ? torch::tensor(numbers_in<int64_t>(data)) : torch::tensor(numbers_in<float>(data));
    inputs.emplace_back(tensor.reshape(sizes));
  }
  torch::NoGradGuard no_grad;
  torch::Tensor output = model.module.forward(inputs).toTensor().to(torch::kFloat).contiguous();
  std::ostringstream text;
  text.precision(9);
  text << "{\"model_name\": \"" << name << "\", \"outputs\": [{\"name\": \"output__0\", \"datatype\": \"FP32\", \"shape\": "
       << output.sizes() << ", \"data\": [";
  for (int64_t i = 0; i < output.numel(); ++i) text << (i ? ", " : "") << output.data_ptr<float>()[i];
  return text.str() + "]}]}\n";
}

class Server {
 public:
  explicit Server(std::map<std::string, Model>& models) : models_(models) {
    for (int i = 0; i < kWorkers; ++i) std::thread([this] { work(); }).detach();
  }

  void run(int port) {
    int listener = ::socket(AF_INET, SOCK_STREAM, 0), yes = 1;
    ::setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_ANY);
    address.sin_port = htons(static_cast<uint16_t>(port));
    if (::bind(listener, reinterpret_cast<sockaddr*>(&address), sizeof address) || ::listen(listener, 64))
      throw std::runtime_error("cannot listen on port " + std::to_string(port));
    std::cout << "serving " << models_.size() << " models on port " << port << std::endl;
    for (;;) {
      int connection = ::accept(listener, nullptr, nullptr);
      if (connection < 0) continue;
      std::lock_guard<std::mutex> lock(mutex_);
      waiting_.push_back(connection);
      ready_.notify_one();
    }
  }

 private:
  void work() {
    for (;;) {
      std::unique_lock<std::mutex> lock(mutex_);
      ready_.wait(lock, [this] { return !waiting_.empty(); });
      int connection = waiting_.front();
      waiting_.pop_front();
      lock.unlock();
      converse(connection);
      ::close(connection);
    }
  }

  void converse(int connection) {
    std::string text;
    char part[4096];
    for (ssize_t size; (size = ::recv(connection, part, sizeof part, 0)) > 0;) {
      text.append(part, static_cast<size_t>(size));
      for (size_t end; (end = text.find("\r\n\r\n")) != std::string::npos;) {
        size_t header = text.find("Content-Length:"), length = header < end ? std::stoul(text.substr(header + 15)) : 0;
        if (text.size() < end + 4 + length) break;
        std::string reply = respond(text.substr(0, end), text.substr(end + 4, length));
        if (::send(connection, reply.data(), reply.size(), MSG_NOSIGNAL) < 0) return;
        text.erase(0, end + 4 + length);
      }
    }
  }

  std::string respond(const std::string& request, const std::string& sent) {
    std::istringstream words(request);
    std::string method, path, status = "200 OK", body, type = "text/plain";
    words >> method >> path;
    bool ready = path == "/v2/health/ready", post = method == "POST";
    std::string name = post ? path.substr(std::min<size_t>(path.size(), 11)) : path.substr(path.empty() ? 0 : 1);
    name = name.substr(0, name.find('/'));
    auto model = models_.find(name);
    try {
      if (ready) body = "";
      else if (model == models_.end()) status = "404 Not Found";
      else if (post) body = infer(model->second, name, sent), type = "application/json";
      else body = answer(model->second);
    } catch (const std::exception& error) {
      status = "500 Internal Server Error", body = error.what();
    }
    return "HTTP/1.1 " + status + "\r\nContent-Type: " + type + "\r\nContent-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body;
  }

  std::map<std::string, Model>& models_;
  std::mutex mutex_;
  std::condition_variable ready_;
  std::deque<int> waiting_;
};
}  // namespace

int main(int count, char** words) {
  if (count < 3) {
    std::cerr << "usage: server PORT MODEL.pt=8x16[,8x4...] ...\n";
    return 2;
  }
  std::map<std::string, Model> models;
  std::mutex loaded;
  std::vector<std::thread> loading;
  for (int i = 2; i < count; ++i)
    loading.emplace_back([&, word = std::string(words[i])] {
      size_t split = word.find('=');
      try {
        Model model = load_model(word.substr(0, split), split == std::string::npos ? "" : word.substr(split + 1));
        warm_up(model);
        std::lock_guard<std::mutex> lock(loaded);
        models.emplace(name_of(word.substr(0, split)), std::move(model));
      } catch (const std::exception& error) {
        std::cerr << word << ": " << error.what() << std::endl;
        std::_Exit(1);
      }
    });
  for (std::thread& thread : loading) thread.join();
  Server(models).run(std::atoi(words[1]));
}

// framedenoise: bilateral filter over the frames of a video, with a report of how much noise went.
// usage: framedenoise IN_DIR OUT_DIR [radius]
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <stdexcept>
#include <string>
#include <vector>

namespace fs = std::filesystem;

struct Image {
    int width = 0, height = 0;
    std::vector<uint8_t> pixels;
};

static Image read_pgm(const fs::path &path) {
    std::FILE *f = std::fopen(path.c_str(), "rb");
    if (!f) throw std::runtime_error("cannot open " + path.string());
    std::setvbuf(f, nullptr, _IOFBF, 1 << 18);
    Image im;
    int top = 0;
    if (std::fscanf(f, "P5 %d %d %d", &im.width, &im.height, &top) != 3 || top != 255 || std::fgetc(f) == EOF) {
        std::fclose(f);
        throw std::runtime_error("not a PGM file: " + path.string());
    }
    im.pixels.resize(size_t(im.width) * im.height);
    size_t got = std::fread(im.pixels.data(), 1, im.pixels.size(), f);
    std::fclose(f);
    if (got != im.pixels.size()) throw std::runtime_error("short file: " + path.string());
    return im;
}

static void write_pgm(const fs::path &path, const Image &im) {
    std::FILE *f = std::fopen(path.c_str(), "wb");
    if (!f) throw std::runtime_error("cannot write " + path.string());
    std::setvbuf(f, nullptr, _IOFBF, 1 << 18);
    std::fprintf(f, "P5\n%d %d\n255\n", im.width, im.height);
    size_t put = std::fwrite(im.pixels.data(), 1, im.pixels.size(), f);
    if (std::fclose(f) != 0 || put != im.pixels.size()) throw std::runtime_error("cannot write " + path.string());
}

class Bilateral {
    int radius;
    std::vector<float> near, alike;

public:
    Bilateral(int r, float space, float tone) : radius(r), alike(256) {
        for (int y = -r; y <= r; ++y)
            for (int x = -r; x <= r; ++x) near.push_back(std::exp(-(x * x + y * y) / (2 * space * space)));
        for (int d = 0; d < 256; ++d) alike[d] = std::exp(-float(d * d) / (2 * tone * tone));
    }

    Image apply(const Image &in) const {
        Image out = in;
        for (int y = 0; y < in.height; ++y)
            for (int x = 0; x < in.width; ++x) {
                const int centre = in.pixels[size_t(y) * in.width + x];
                float sum = 0, weight = 0;
                const float *w = near.data();
                for (int dy = -radius; dy <= radius; ++dy) {
                    const uint8_t *row = &in.pixels[size_t(std::clamp(y + dy, 0, in.height - 1)) * in.width];
                    for (int dx = -radius; dx <= radius; ++dx) {
                        int v = row[std::clamp(x + dx, 0, in.width - 1)];
                        float k = *w++ * alike[std::abs(v - centre)];
                        sum += k * v;
                        weight += k;
                    }
                }
                out.pixels[size_t(y) * in.width + x] = uint8_t(std::lround(sum / weight));
            }
        return out;
    }
};

static double roughness(const Image &im) {
    double sum = 0;
    for (int y = 0; y < im.height; ++y)
        for (int x = 1; x < im.width; ++x) {
            double d = double(im.pixels[size_t(y) * im.width + x]) - im.pixels[size_t(y) * im.width + x - 1];
            sum += d * d;
        }
    return std::sqrt(sum / (double(im.height) * (im.width - 1)));
}

int main(int argc, char **argv) try {
    if (argc < 3) {
        std::fprintf(stderr, "usage: framedenoise IN_DIR OUT_DIR [radius]\n");
        return 2;
    }
    Bilateral filter(argc > 3 ? std::stoi(argv[3]) : 3, 2.0f, 25.0f);
    fs::create_directories(argv[2]);
    std::vector<fs::path> frames;
    for (const auto &e : fs::directory_iterator(argv[1]))
        if (e.path().extension() == ".pgm") frames.push_back(e.path());
    std::sort(frames.begin(), frames.end());
    double before = 0, after = 0;
    for (const auto &path : frames) {
        Image in = read_pgm(path), out = filter.apply(in);
        write_pgm(fs::path(argv[2]) / path.filename(), out);
        before += roughness(in);
        after += roughness(out);
    }
    std::printf("%zu frames, roughness %.3f before, %.3f after\n", frames.size(), before / frames.size(), after / frames.size());
    return 0;
} catch (const std::exception &e) {
    std::fprintf(stderr, "framedenoise: %s\n", e.what());
    return 1;
}

#pragma once
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

// Lines of a file, read in pieces of 256 KiB.
class LineReader {
public:
    explicit LineReader(const std::string &path);
    ~LineReader();
    LineReader(const LineReader &) = delete;
    LineReader &operator=(const LineReader &) = delete;
    bool next(std::string_view &line);

private:
    bool fill();
    int fd_;
    std::vector<char> buf_;
    std::size_t begin_ = 0, end_ = 0;
    bool eof_ = false;
};

// A new file, written in pieces of 1 MiB below a temporary name and renamed by commit().
class FileWriter {
public:
    explicit FileWriter(const std::string &path);
    ~FileWriter();
    void append(std::string_view s);
    void commit();

private:
    void flush();
    std::string path_;
    int fd_;
    std::vector<char> buf_;
    std::size_t used_ = 0;
};

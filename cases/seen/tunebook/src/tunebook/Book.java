package tunebook;

import java.io.BufferedReader;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.function.Consumer;

/** A collection: tunes with an empty line between them. */
final class Book {
    private final Path path;

    Book(Path path) {
        this.path = path;
    }

    void each(Consumer<Tune> to) throws IOException {
        try (BufferedReader in = Files.newBufferedReader(path, StandardCharsets.US_ASCII)) {
            List<String> lines = new ArrayList<>();
            for (String line; (line = in.readLine()) != null; ) {
                if (!line.isEmpty()) {
                    lines.add(line);
                } else if (!lines.isEmpty()) {
                    to.accept(Tune.parse(lines));
                    lines.clear();
                }
            }
            if (!lines.isEmpty()) to.accept(Tune.parse(lines));
        }
    }
}

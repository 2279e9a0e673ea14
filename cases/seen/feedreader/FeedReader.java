import java.io.BufferedOutputStream;
import java.io.BufferedReader;
import java.io.BufferedWriter;
import java.io.IOException;
import java.io.OutputStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.nio.file.StandardOpenOption;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.TreeMap;
import java.util.zip.CRC32;

/** The store of a desktop feed reader: applies the events of a sync to the library of articles. */
public class FeedReader {
    enum State { NEW, READ, STAR }

    static final class Article {
        final String guid, feed, title;
        final byte[] tail;
        final byte[] head;
        State state;
        long changed;
        byte[] status;

        Article(String line) {
            String[] f = line.split("\t", 6);
            guid = f[0];
            feed = f[1];
            set(State.valueOf(f[2].toUpperCase()), Long.parseLong(f[3]));
            title = f[4];
            head = (guid + "\t" + feed + "\t").getBytes(StandardCharsets.UTF_8);
            tail = ("\t" + title + "\t" + f[5] + "\n").getBytes(StandardCharsets.UTF_8);
        }

        void set(State to, long time) {
            state = to;
            changed = time;
            status = (state.name().toLowerCase() + "\t" + changed).getBytes(StandardCharsets.UTF_8);
        }
    }

    static final class Library {
        final Path file;
        final Map<String, Article> articles = new LinkedHashMap<>();

        Library(Path from, Path file) throws IOException {
            this.file = file;
            try (BufferedReader in = Files.newBufferedReader(from)) {
                for (String line; (line = in.readLine()) != null; ) {
                    Article a = new Article(line);
                    articles.put(a.guid, a);
                }
            }
        }

        /** Replaces the library file, so that a crash leaves either the old or the new one. */
        void save() throws IOException {
            Path fresh = file.resolveSibling(file.getFileName() + ".new");
            try (OutputStream out = new BufferedOutputStream(Files.newOutputStream(fresh), 1 << 17)) {
                for (Article a : articles.values()) {
                    out.write(a.head);
                    out.write(a.status);
                    out.write(a.tail);
                }
            }
            Files.move(fresh, file, StandardCopyOption.ATOMIC_MOVE, StandardCopyOption.REPLACE_EXISTING);
        }

        boolean apply(String guid, String event, long time) {
            Article a = articles.get(guid);
            if (a == null || a.changed >= time) return false;
            a.set(switch (event) {
                case "read" -> a.state == State.NEW ? State.READ : a.state;
                case "star" -> State.STAR;
                case "unread" -> State.NEW;
                default -> throw new IllegalArgumentException(event);
            }, time);
            return true;
        }
    }

    public static void main(String[] args) throws IOException {
        boolean journaled = args.length == 2 && args[1].equals("--journal");
        Path dir = Path.of(args[0]);
        Library library = new Library(dir.resolve("library.start"), dir.resolve("library.tsv"));
        library.save();
        int applied = 0;
        Path journal = dir.resolve("library.journal");
        try (BufferedReader in = Files.newBufferedReader(dir.resolve("sync.log"));
                BufferedWriter log = journaled ? Files.newBufferedWriter(journal, StandardOpenOption.CREATE,
                        StandardOpenOption.APPEND) : null) {
            for (String line; (line = in.readLine()) != null; ) {
                String[] f = line.split("\t");
                if (!library.apply(f[0], f[1], Long.parseLong(f[2]))) continue;
                applied++;
                if (journaled) {
                    log.write(line);
                    log.newLine();
                    log.flush();
                } else {
                    library.save();
                }
            }
        }
        if (journaled) {
            library.save();
            Files.delete(journal);
        }
        report(library, applied);
    }

    static void report(Library library, int applied) throws IOException {
        Map<State, Integer> states = new TreeMap<>();
        Map<String, Integer> unread = new HashMap<>();
        for (Article a : library.articles.values()) {
            states.merge(a.state, 1, Integer::sum);
            if (a.state == State.NEW) unread.merge(a.feed, 1, Integer::sum);
        }
        System.out.println(applied + " events applied, " + states);
        unread.entrySet().stream().sorted((x, y) -> y.getValue() != x.getValue().intValue()
                ? y.getValue() - x.getValue() : x.getKey().compareTo(y.getKey())).limit(5)
                .forEach(e -> System.out.println(e.getKey() + " " + e.getValue() + " unread"));
        CRC32 crc = new CRC32();
        crc.update(Files.readAllBytes(library.file));
        System.out.printf("library %08x%n", crc.getValue());
    }
}

// Encrypts under a joint key, computes and saves, with SEAL alone: example KEY_FOLDER OUTPUT NUMBER...
//
// KEY_FOLDER is keys/NAME of a folder that `keyquorum export` wrote: it has parms, public.key, relin.key and galois.key, the last one with rotation step 1.
// OUTPUT gets the squares of the numbers, rotated to the left by one, for `keyquorum decrypt`. BFV or BGV.

#include <seal/seal.h>

#include <cstdint>
#include <cstdlib>
#include <exception>
#include <fstream>
#include <iostream>
#include <stdexcept>
#include <string>
#include <vector>

namespace {

std::ifstream open(const std::string &path) {
    std::ifstream file(path, std::ios::binary);
    if (!file) throw std::runtime_error(path + ": cannot be read");
    return file;
}

// Loads a key and checks it against the parameters.
template <class Key> Key load(const seal::SEALContext &context, const std::string &path) {
    auto file = open(path);
    Key key;
    key.load(context, file);
    return key;
}

void run(const std::string &folder, const std::string &output, const std::vector<std::int64_t> &numbers) {
    seal::EncryptionParameters parms;
    auto file = open(folder + "/parms");
    parms.load(file);
    if (parms.scheme() != seal::scheme_type::bfv && parms.scheme() != seal::scheme_type::bgv) throw std::runtime_error("a key of CKKS: this example is for BFV and BGV");
    const seal::SEALContext context(parms);
    if (!context.parameters_set()) throw std::runtime_error(context.parameter_error_message());

    const auto public_key = load<seal::PublicKey>(context, folder + "/public.key");
    const auto relin_keys = load<seal::RelinKeys>(context, folder + "/relin.key");
    const auto galois_keys = load<seal::GaloisKeys>(context, folder + "/galois.key");

    const seal::BatchEncoder encoder(context);
    seal::Plaintext plain;
    encoder.encode(numbers, plain);
    seal::Ciphertext ciphertext;
    seal::Encryptor(context, public_key).encrypt(plain, ciphertext);

    const seal::Evaluator evaluator(context);
    evaluator.square_inplace(ciphertext);
    evaluator.relinearize_inplace(ciphertext, relin_keys); // the committee takes ciphertexts of two parts
    evaluator.rotate_rows_inplace(ciphertext, 1, galois_keys);

    std::ofstream saved(output, std::ios::binary);
    ciphertext.save(saved);
    if (!saved.flush()) throw std::runtime_error(output + ": cannot be written");
    std::cout << output << ": " << numbers.size() << " squares, rotated by 1, SEAL " << SEAL_VERSION << '\n';
}

} // namespace

int main(int count, char **words) {
    if (count < 4) {
        std::cerr << "usage: example KEY_FOLDER OUTPUT NUMBER...\n";
        return EXIT_FAILURE;
    }
    try {
        std::vector<std::int64_t> numbers;
        for (int i = 3; i < count; ++i) numbers.push_back(std::stoll(words[i]));
        run(words[1], words[2], numbers);
    } catch (const std::exception &error) {
        std::cerr << "example: " << error.what() << '\n';
        return EXIT_FAILURE;
    }
    return EXIT_SUCCESS;
}
